"""LaTeX of a coloured sentence: its colours, its escapes, and that it compiles where TeX is."""

import re
import shutil
import subprocess

import pytest
from results.records import film
from views import samples

from attlas.views import latex
from attlas.views.colours import READABLE, contrast
from attlas.views.figures.latex import PREAMBLE

SPECIAL = ["$x$", "a_b", "100%", "#1", "\\end", "{", "}", "^", "~", "&", '"', "--", "]", "\x07"]
LATIN = ["café", "Łódź", "Ąę", "«oui»", "“so”", "–", "…", "€", "½", "ñ", "İ", "e\u0301", "≥", "−"]
BOX = re.compile(
    r"\\colorbox\[RGB\]\{([\d,]+)\}\{\\textcolor\[RGB\]\{([\d,]+)\}\{\\strut (.*?)\}\}"
)


def colour(words):
    return tuple(map(int, words.split(",")))


def test_a_word_stands_on_its_colour_in_an_ink_that_is_readable():
    found = BOX.findall(latex(samples.film()))
    assert [word for *_, word in found][:4] == ["not", "a", "great", "films"]
    assert colour(found[0][0]) == (37, 99, 168)
    assert all(contrast(colour(paper), colour(ink)) >= READABLE for paper, ink, _ in found)


def test_it_says_what_it_needs_and_a_result_gives_it():
    assert latex(samples.film()).startswith(
        "% needs \\usepackage[T1]{fontenc}\\usepackage{xcolor} in the preamble\n"
    )
    assert film().to_latex().count("\\colorbox") >= 3


def test_no_token_is_a_command():
    written = latex(samples.explanation(SPECIAL))
    body = written.split("\\raggedright\n")[1]
    for sign, shown in {"$": r"\$", "%": r"\%", "#": r"\#", "_": r"\_", "&": r"\&"}.items():
        assert body.count(shown) >= 1
        assert not re.search(rf"(?<!\\){re.escape(sign)}", body.replace("}}%\n", "}}\n")), sign
    assert "\\textbackslash{}end" in body and "\\textbackslash{}x07" in body
    assert "-\\kern0pt{}-" in body  # two strokes, not a dash
    plain = re.sub(r"\\[{}]", "", written)
    assert plain.count("{") == plain.count("}")


def test_letters_that_pdflatex_cannot_write_are_named():
    assert "cannot write" not in latex(samples.explanation([*SPECIAL, *LATIN]))
    written = latex(samples.explanation(["Ελ", "中", "😀", "a"]))
    assert written.splitlines()[1] == (
        "% pdflatex cannot write Ελ中😀: use lualatex and a font that has them"
    )


def test_signs_that_are_not_seen_leave_no_trace_and_accents_join_their_letters():
    words = [word for *_, word in BOX.findall(latex(samples.explanation(["a\u200bb", "e\u0301"])))]
    assert words == ["ab", "é"]


def test_a_line_may_break_inside_a_long_word_and_between_pieces_of_one():
    long = "Donaudampfschifffahrtsgesellschaftskapitän"
    written = latex(samples.explanation([long]))
    assert "".join(word for *_, word in BOX.findall(written)) == long
    assert max(len(word) for *_, word in BOX.findall(written)) == 24
    assert written.count("\\allowbreak") == 1


def test_two_texts_are_two_paragraphs_with_their_names():
    written = latex(samples.pair())
    assert written.count("\\par") == 2 and "\\textit{question}" in written


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no TeX here")
def test_it_compiles(tmp_path):
    body = latex(samples.explanation([*SPECIAL, *LATIN, "plain", "words", 90 * "long"]))
    head = f"\\documentclass{{article}}{PREAMBLE}\\begin{{document}}\n"
    (tmp_path / "a.tex").write_text(f"{head}{body}\\end{{document}}\n")
    command = ["pdflatex", "-halt-on-error", "a.tex"]
    told = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True).stdout
    assert b"Overfull" not in told
