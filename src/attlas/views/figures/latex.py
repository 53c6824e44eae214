"""A coloured sentence as LaTeX; it needs `\\usepackage{xcolor}` and an encoding of its letters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

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

PREAMBLE = r"\usepackage{xcolor}"
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
    "-": "{-}",  # two of them would become a dash
    "[": "{[}",
    "]": "{]}",
    "⏎": r"$\hookleftarrow$",
    "⇥": r"$\mapsto$",
    "∅": r"$\emptyset$",
    "␣": r"\textvisiblespace{}",
    "…": r"\ldots{}",
}


def latex(payload: Mapping[str, Any]) -> str:
    """The words of an explanation in boxes of their colours, for a paper.

    The first line is a comment that says what the preamble needs.
    """
    units = words_or_tokens(payload)
    cells = [cell for _, own in patches(payload, units) for cell in own]
    words = units_except(units, cells)
    top, segments = limit(words), in_segments(words)
    lines = [f"% needs {PREAMBLE} in the preamble", r"{\setlength{\fboxsep}{1.5pt}\raggedright"]
    for name, row in segments.items():
        heading = f"\\textit{{{escape_latex(name)}}}\\quad%\n" if len(segments) > 1 else ""
        lines.append(heading + "".join(_boxes(row, top, payload["signed"])) + r"\par")
    return "\n".join([*lines, "}"]) + "\n"


def escape_latex(text: str) -> str:
    """The text as LaTeX writes it; no sign of it is a command."""
    return "".join(_SIGNS.get(sign, sign) for sign in text)


def _boxes(row: Sequence[ShownUnit], top: float, signed: bool) -> Iterator[str]:
    for before, unit in zip([None, *row], row, strict=False):
        if before is not None:
            yield "\n" if gap(before, unit) else "%\n"
        text = rf"\strut {escape_latex(unit.text)}"
        if unit.special:
            yield rf"\textcolor[RGB]{{102,98,90}}{{\footnotesize {escape_latex(unit.text)}}}"
            continue
        paper = background(strength(unit.score, top), signed, _PAPER)
        colours = _rgb(paper), _rgb(ink(paper, _PAPER))
        yield rf"\colorbox[RGB]{{{colours[0]}}}{{\textcolor[RGB]{{{colours[1]}}}{{{text}}}}}"


def _rgb(colour: RGB) -> str:
    return ",".join(map(str, colour))
