"""LaTeX of a coloured sentence: its colours, its escapes, and that it compiles where TeX is."""

import re
import shutil
import subprocess

import pytest
from results.records import film
from views import samples

from attlas.views import latex
from attlas.views.colours import READABLE, contrast

SPECIAL = ["$x$", "a_b", "100%", "#1", "\\end", "{", "}", "^", "~", "&", '"', "--", "]"]
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
    assert latex(samples.film()).startswith("% needs \\usepackage{xcolor} in the preamble\n")
    assert film().to_latex().count("\\colorbox") >= 3


def test_no_token_is_a_command():
    written = latex(samples.explanation(SPECIAL))
    body = written.split("\\raggedright\n")[1]
    for sign, shown in {"$": r"\$", "%": r"\%", "#": r"\#", "_": r"\_", "&": r"\&"}.items():
        assert body.count(shown) >= 1
        assert not re.search(rf"(?<!\\){re.escape(sign)}", body.replace("}}%\n", "}}\n")), sign
    assert "\\textbackslash{}end" in body and "{-}{-}" in body
    plain = re.sub(r"\\[{}]", "", written)
    assert plain.count("{") == plain.count("}")


def test_two_texts_are_two_paragraphs_with_their_names():
    written = latex(samples.pair())
    assert written.count("\\par") == 2 and "\\textit{question}" in written


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no TeX here")
def test_it_compiles(tmp_path):
    body = latex(samples.explanation([*SPECIAL, "plain", "words"]))
    head = "\\documentclass{article}\\usepackage{xcolor}\\begin{document}\n"
    (tmp_path / "a.tex").write_text(f"{head}{body}\\end{{document}}\n")
    command = ["pdflatex", "-halt-on-error", "a.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
