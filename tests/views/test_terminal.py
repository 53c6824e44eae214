import io
import re

import pytest
from rich.console import Console
from views import samples

from attlas.views import fragment, render

FILM = """\
NEGATIVE             0.710 ██████████████
POSITIVE             0.290 ██████               target
gradient_attention on sentiment · target POSITIVE · probability 0.290
[CLS] not a great films, but I could not look away [SEP]

not (1st)               -0.420 ████████████████████│
great                   +0.380                     │██████████████████
away                    +0.270                     │█████████████
but                     +0.210                     │██████████
look                    +0.170                     │████████

Note: The text was read as one sentence of 14 tokens.
"""

PAIR = """\
Ada Lovelace         0.930 ██████████████████▌  target
attention_flow on reader · target Ada Lovelace · logit 11.420
question: Who wrote the first algorithm ?
context: Ada Lovelace wrote what is often called the first program , in 1843 .

in                       0.249 ████████████████████
"""

# By hand: "." is row 1 at place 6, and owes |sin 20| / 2 to place 5, |sin 17| / 4 to place 4.
WRITTEN = """\
attention_rollout on smol · 8 tokens written

text: The capital of France is
output: Paris. It lies on the Seine!

Paris              ← is         0.268   France     0.103   of         0.047
.                  ← Paris      0.456   is         0.240   France     0.165
"""


def shown(payload, **options):
    stream = io.StringIO()
    Console(file=stream, width=80, **options).print(render(payload))
    return stream.getvalue()


def test_a_sentence():
    assert shown(samples.film()) == FILM


def test_the_true_label_is_told_where_it_is_known():
    words = shown({**samples.film(), "true_label": "POSITIVE"}).split()
    assert "probability 0.290 · true label POSITIVE" in " ".join(words)


def test_scores_that_add_up_say_how():
    found = {"base": 0.125, "of": "every token masked", "scores": 0.165}
    line = "base value 0.125 (every token masked) + scores 0.165 = probability 0.290"
    assert line in shown({**samples.film(), "sum": found})
    assert line in fragment({**samples.film(), "sum": found})
    line = "scores 0.340 - 0.050 (biases) = probability 0.290"
    assert line in shown({**samples.film(), "sum": {"rest_of": "biases", "scores": 0.34}})


def test_two_segments():
    assert shown(samples.pair()).startswith(PAIR)


def test_an_image_is_shaded_by_score():
    payload = samples.image(2, 3)
    for token, score in zip(payload["tokens"][1:], [0.0, 0.1, 0.2, 0.3, 0.4, 0.04], strict=True):
        token["score"] = score
    assert "\n··░░▒▒\n▓▓██··\n" in shown(payload)


def test_patches_beside_a_text_have_a_scale_of_their_own():
    payload = samples.captioned()
    before = shown(payload).split("\n\n")[0]
    assert "██" in before
    for row in payload["tokens"][:6] + payload["words"][:6]:
        row["score"] *= 1000
    assert shown(payload).split("\n\n")[0] == before


def test_a_regression_has_a_value_and_no_bar():
    payload = samples.explanation(
        ["good"],
        prediction=[{"label": "rating", "probability": None, "value": 3.25}],
        target={"name": "rating", "quantity": "value", "contrast": None, "value": 3.25},
    )
    assert shown(payload).startswith("rating               3.250 target\n")


def test_a_contrast_is_named():
    target = {"name": "A", "quantity": "logit", "contrast": "B", "value": None}
    payload = samples.explanation(["good"], prediction=[], target=target)
    assert shown(payload).startswith("gradient_attention on sentiment · target A rather than B\n")


def test_colour_is_only_for_a_terminal_that_wants_it(monkeypatch):
    assert "\x1b" not in shown(samples.film())
    coloured = shown(samples.film(), force_terminal=True, color_system="truecolor")
    assert "48;2;" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    plain = shown(samples.film(), force_terminal=True)
    assert not re.search(r"\x1b\[[\d;]*[34]8;", plain)
    assert re.sub(r"\x1b\[[\d;]*m", "", plain) == FILM


def test_hostile_tokens_are_neither_obeyed_nor_lost():
    payload = samples.explanation(
        samples.HOSTILE,
        notes=["\x1b]0;title\x07[red]note[/red]"],
        model="[blink]m\x1b[2J",
        prediction=[{"label": "\x1b[1mlabel", "probability": 0.5}],
    )
    text = shown(payload)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800]", text)
    for expected in ("[bold]markup[/bold]", "␛[31mred", "\\u202eevil", "∅", "שלום", "[red]note"):
        assert expected in text
    text.encode()


@pytest.mark.parametrize("piece", ["x" * 300, "漢字" * 60, "e\u0301" * 60])
def test_no_line_is_wider_than_the_terminal(piece):
    from rich.cells import cell_len

    payload = samples.explanation([piece, "good"])
    assert max(map(cell_len, shown(payload).splitlines())) <= 80


def test_scores_of_nothing_at_all():
    payload = samples.explanation(["good"])
    payload["tokens"][0]["score"] = payload["words"][0]["score"] = 0.0
    assert "good                    +0.000                     │\n" in shown(payload)


def test_what_was_written_and_what_it_owes():
    assert shown(samples.generation()).startswith(WRITTEN)
    assert shown(samples.generation()).endswith("\nNote: The model stopped by itself.\n")


def test_the_tokens_of_a_generation_where_no_words_are_wanted():
    payload = {**samples.generation("a", " bc d"), "words": None}
    payload["words"] = [samples.word("bcd", 0.0, [1, 2], segment="output")]
    assert "\nbcd " in shown(payload)
    assert "\nbc " in shown({**payload, "words": None})


def test_a_generation_without_colour(monkeypatch):
    plain = shown(samples.generation())
    assert "\x1b" not in plain
    coloured = shown(samples.generation(), force_terminal=True, color_system="truecolor")
    assert "48;2;" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[\d;]*[34]8;", shown(samples.generation(), force_terminal=True))


@pytest.mark.parametrize("piece", ["x" * 300, "漢字" * 60, "\x1b[2J"])
def test_no_line_of_a_generation_is_wider_than_the_terminal(piece):
    from rich.cells import cell_len

    payload = samples.generation("a b", " c d")
    for row in payload["tokens"] + payload["words"]:
        row["text"] = row["label"] = piece
    text = shown(payload)
    assert max(map(cell_len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_a_text_and_a_picture():
    text = shown(samples.captioned())
    assert "\nwhat is in the sky ?\n░░" in text


def test_a_label_of_a_token_names_the_word_that_holds_it():
    target = {"name": "B-LOC", "quantity": "logit", "value": 1.0, "contrast": None, "position": 5}
    given = {**samples.film(), "target": target}
    assert given["tokens"][5]["label"] == "s"  # the second part of "films"
    assert "target B-LOC at films · logit 1.000" in shown(given)


@pytest.mark.parametrize("sample", [samples.explanation(["a", "b"]), samples.generation()])
def test_a_warning_stands_above_the_scores(sample):
    warned = {**sample, "warning": "not converged: [b]do not read[/b]"}
    told = shown(warned)
    assert "Warning: not converged: [b]do not read[/b]" in told
    assert told.index("Warning") < told.index("\n\n")
    assert "Warning" not in shown(sample)
    notebook = fragment({**warned, "warning": "<i>no"})
    assert "<b>Warning:</b> &lt;i&gt;no" in notebook
    assert "Warning" not in fragment(sample)
