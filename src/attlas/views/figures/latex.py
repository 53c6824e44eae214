"""A coloured sentence as LaTeX, for pdflatex; letters beyond Latin need lualatex or xelatex."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from textwrap import wrap
from typing import Any
from unicodedata import normalize

from attlas.views.colours import LIGHT, RGB, background, ink, strength
from attlas.views.units import (
    ShownUnit,
    gap,
    in_segments,
    limit,
    patches,
    units_except,
    words_or_tokens,
)

PREAMBLE = r"\usepackage[T1]{fontenc}\usepackage{xcolor}"
LONGEST = 24  # letters of a word that a line is not broken in
_PAPER = replace(LIGHT, paper=(255, 255, 255))
_SIGNS = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "[": "{[}",
    "]": "{]}",
    "⏎": r"$\hookleftarrow$",
    "⇥": r"$\mapsto$",
    "∅": r"$\emptyset$",
    "␣": r"\textvisiblespace{}",
    "…": r"\ldots{}",
    "−": "$-$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "∞": r"$\infty$",
    "\u200b": "",  # zero-width signs leave no trace on paper
    "\u200c": "",
    "\u200d": "",
    "\u2060": "",
    "\ufe0f": "",
}
# What pdflatex cannot write with this preamble: all beyond these, and of these a few.
_LAST_LATIN, _NOT_KNOWN, _KNOWN = 0x17F, "ĦħĸĿŀŉŦŧſ", "–—‘’‚“”„†‡•…‰‹›€™←↑→↓"


def latex(payload: Mapping[str, Any]) -> str:
    """The words of an explanation in boxes of their colours, for a paper.

    The first line is a comment that says what the preamble needs. If pdflatex cannot write some
    of the letters, the next one names them: lualatex and xelatex take them from a font.
    """
    units = words_or_tokens(payload)
    cells = [cell for _, own in patches(payload, units) for cell in own]
    words = units_except(units, cells)
    top, segments = limit(words), in_segments(words)
    strange = "".join(dict.fromkeys(sign for word in words for sign in _beyond(word.text)))
    lines = [f"% needs {PREAMBLE} in the preamble"]
    if strange:
        lines.append(f"% pdflatex cannot write {strange}: use lualatex and a font that has them")
    lines.append(r"{\setlength{\fboxsep}{1.5pt}\raggedright")
    for name, row in segments.items():
        heading = f"\\textit{{{escape_latex(name)}}}\\quad%\n" if len(segments) > 1 else ""
        lines.append(heading + "".join(_boxes(row, top, payload["signed"])) + r"\par")
    return "\n".join([*lines, "}"]) + "\n"


def escape_latex(text: str) -> str:
    """The text as LaTeX writes it; no sign of it is a command."""
    signs = normalize("NFC", text)
    written = [_SIGNS[sign] if sign in _SIGNS else _named(sign) for sign in signs]
    for place, (before, sign) in enumerate(pairwise(signs), 1):
        if before == sign and sign in "-,<>":  # two would become a dash or a quotation mark
            written[place] = rf"\kern0pt{{}}{written[place]}"
    return "".join(written)


def _named(sign: str) -> str:
    """The sign itself; the picture of a control character is written as its number."""
    code = ord(sign) - 0x2400
    if 0 <= code <= 0x21:
        return rf"\textbackslash{{}}x{0x7F if code == 0x21 else code:02x}"
    return sign


def _beyond(text: str) -> Iterator[str]:
    """The signs that pdflatex cannot write."""
    for sign in normalize("NFC", text):
        latin = ord(sign) <= _LAST_LATIN and sign not in _NOT_KNOWN
        if not (latin or sign in _KNOWN or sign in _SIGNS or _named(sign) != sign):
            yield sign


def _boxes(row: Sequence[ShownUnit], top: float, signed: bool) -> Iterator[str]:
    for before, unit in zip([None, *row], row, strict=False):
        if before is not None:
            yield "\n" if gap(before, unit) else "\\allowbreak%\n"
        if unit.special:
            yield rf"\textcolor[RGB]{{102,98,90}}{{\footnotesize {escape_latex(unit.text)}}}"
            continue
        paper = background(strength(unit.score, top), signed, _PAPER)
        colours = _rgb(paper), _rgb(ink(paper, _PAPER))
        # The pieces of a long word overlap by the room to their right, so that it stays one word.
        pieces = wrap(unit.text, LONGEST, drop_whitespace=False) or [unit.text]
        yield "\\kern-1.5pt\\allowbreak%\n".join(_box(piece, *colours) for piece in pieces)


def _box(text: str, paper: str, colour: str) -> str:
    inside = rf"\strut {escape_latex(text)}"
    return rf"\colorbox[RGB]{{{paper}}}{{\textcolor[RGB]{{{colour}}}{{{inside}}}}}"


def _rgb(colour: RGB) -> str:
    return ",".join(map(str, colour))
