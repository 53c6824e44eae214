"""Generations: rows, spans, words and sentences, JSON, saving; and how they show themselves."""

import ast
import base64
import json
from dataclasses import fields, replace
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from results.records import film, origin, same_array
from rich.console import Console

from attlas.errors import ResultFileError, UnknownNameError, UsageError
from attlas.results import Generation, TargetRecord
from attlas.tokens import Tokens

PIECES = ["Two", " towns", ".", " Par", "is", ".", " Yes", "</s>"]
SPANS = ((0, 3), (3, 9), (9, 10), (0, 4), (4, 6), (6, 7), (7, 11), None)
SCORES = np.array(
    [
        [1.0, 2.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [3.0, 1.0, 0.5, 8.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 1.0, 2.0, 6.0, 0.0, 0.0, 0.0],
        [1.0, 1.0, 2.0, 0.5, 0.5, 3.0, 0.0, 0.0],
        [2.0, 0.0, 0.0, 1.0, 1.0, 1.0, 5.0, 0.0],
    ],
    dtype=np.float32,
)


def town(**changes):
    """Five tokens written after three: a word of two, a mark, a word, and an end."""
    tokens = Tokens(
        tuple(PIECES),
        SPANS,
        (False,) * 7 + (True,),
        ("text",) * 3 + ("output",) * 5,
        {"text": "Two towns.", "output": " Paris. Yes"},
    )
    names = [" Par", "is", ".", " Yes", "</s>"]
    given = {
        "tokens": tokens,
        "scores": SCORES,
        "outputs": (3, 4, 5, 6, 7),
        "targets": tuple(
            TargetRecord(name, "logit", float(i), position=2 + i) for i, name in enumerate(names)
        ),
        "origin": origin(
            signed=False,
            asked={"text": "Two towns.", "max_new_tokens": 5},
            verb="explain_generation",
        ),
        "notes": ("a note",),
        "predictions": tuple(({"label": name, "probability": 0.5},) for name in names),
        **changes,
    }
    return Generation(**given)


# What it holds


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scores": SCORES[:, :7]}, r"5 outputs of 8 tokens but scores of shape \(5, 7\)"),
        ({"scores": SCORES[:4]}, r"5 outputs of 8 tokens but scores of shape \(4, 8\)"),
        ({"outputs": (3, 4, 5, 7, 6)}, "8 tokens in rising order"),
        ({"outputs": (3, 4, 5, 6, 8)}, "8 tokens in rising order"),
        ({"outputs": (2, 4, 5, 6, 7)}, "row 0 has scores at or after token 2"),
        ({"targets": ()}, "5 outputs but 0 targets"),
        ({"predictions": ((),)}, "5 outputs but 1 predictions"),
        ({"scores": np.where(SCORES == 8, np.nan, SCORES)}, "finite"),
        ({"pictures": {"image": np.zeros((2, 2, 4), dtype=np.uint8)}}, "three colours"),
    ],
)
def test_what_does_not_fit_is_an_error(changes, message):
    with pytest.raises(UsageError, match=message):
        town(**changes)


def test_length_method_and_text():
    assert len(town()) == 5
    assert town().method == "gradient_attention"
    assert town().text == "Paris. Yes"
    assert repr(town()) == "Generation(gradient_attention of 5 written tokens: Paris. Yes)"


# Rows and spans


@pytest.mark.parametrize("index", [0, 1, 4, -1])
def test_a_row_is_that_row_of_the_matrix_up_to_its_token(index):
    row, place = town().row(index), range(3, 8)[index]
    assert list(row.tokens) == PIECES[:place]
    assert row.scores.tolist() == SCORES[index, :place].tolist()
    assert row.target == town().targets[index]
    assert row.prediction == town().predictions[index]
    assert row.notes == ("a note",)
    assert row.code().endswith(f").row({range(5)[index]})")
    assert "attlas.explain_generation(" in row.code()


def test_a_row_does_not_know_what_comes_after_it():
    row = town().row(1)
    assert row.tokens.sources == {"text": "Two towns.", "output": " Par"}
    assert row.aggregate("words")["word"].tolist() == ["Two", "towns", ".", "Par"]
    assert town().row(0).tokens.sources == {"text": "Two towns."}


def test_a_span_is_the_mean_of_its_rows():
    span = town().mean(1, 3)
    assert list(span.tokens) == PIECES[:5]
    assert span.scores.tolist() == [1.5, 1.0, 0.75, 5.0, 3.0]
    assert (span.target.name, span.target.quantity, span.target.value) == ("is.", "logit", 1.5)
    assert span.notes == ("a note", "The mean over 2 written tokens.")
    assert span.code().endswith(").mean(1, 3)")
    assert town().mean().scores.tolist() == SCORES[:, :7].mean(axis=0).tolist()


@pytest.mark.parametrize("index", [5, -6])
def test_a_row_that_is_not_there(index):
    with pytest.raises(UsageError, match=f"there is no row {index}: 5 tokens were written"):
        town().row(index)


@pytest.mark.parametrize(("start", "stop"), [(2, 2), (3, 1), (5, 9)])
def test_a_span_of_nothing(start, stop):
    with pytest.raises(UsageError, match="there are 5 written tokens"):
        town().mean(start, stop)


# Tables


def test_aggregate_words():
    table = town().aggregate()
    inputs = [(0, "Two"), (1, "towns"), (2, "."), (3, "Paris"), (5, "."), (6, "Yes"), (7, "</s>")]
    assert list(table.columns) == inputs
    assert list(table.index) == inputs[3:]
    assert table.index.names == ["output", "text"]
    assert table.columns.names == ["input", "text"]
    assert table.to_numpy().tolist() == [
        [2.0, 1.5, 2.25, 4.0, 0.0, 0.0, 0.0],  # the mean of "Par" and "is"; "is" owes 8 to "Par"
        [0.0, 1.0, 1.0, 8.0, 0.0, 0.0, 0.0],
        [1.0, 1.0, 2.0, 1.0, 3.0, 0.0, 0.0],
        [2.0, 0.0, 0.0, 2.0, 1.0, 5.0, 0.0],
    ]


def test_aggregate_sentences():
    table = town().aggregate("sentences")
    assert list(table.columns) == [(0, "Two towns."), (3, "Paris."), (6, "Yes"), (7, "</s>")]
    assert table.to_numpy() == pytest.approx(
        np.array(
            [
                [(7 + 4.5 + 2) / 3, (0 + 8 + 8) / 3, 0.0, 0.0],
                [4.0, 4.0, 0.0, 0.0],
                [2.0, 3.0, 5.0, 0.0],
            ]
        )
    )


def test_aggregate_tokens_or_something_else():
    table = town().aggregate("tokens")
    assert table.to_numpy().tolist() == SCORES.tolist()
    assert list(table.columns) == list(enumerate(PIECES))
    with pytest.raises(UnknownNameError, match="did you mean 'words'"):
        town().aggregate("word")


def test_only_some_of_what_was_written():
    some = town(outputs=(4,), scores=SCORES[1:2], targets=town().targets[1:2], predictions=())
    assert some.aggregate().index.tolist() == [(3, "Paris")]
    assert some.row(0).prediction == ()


def test_to_pandas_has_a_row_for_each_output_and_each_token_before_it():
    table = town().to_pandas()
    assert list(table.columns) == ["output", "output_token", "input", "input_token", "score"]
    assert len(table) == 3 + 4 + 5 + 6 + 7
    first = table[table["output"] == 4]
    assert first["input_token"].tolist() == PIECES[:4]
    assert first["score"].tolist() == [3.0, 1.0, 0.5, 8.0]
    assert set(first["output_token"]) == {"is"}


def test_nothing_written():
    empty = town(outputs=(), scores=np.zeros((0, 8), np.float32), targets=(), predictions=())
    assert len(empty) == len(empty.to_pandas()) == len(empty.aggregate()) == 0
    assert empty.sinks == ()
    assert "0 tokens written" in empty._repr_html_()
    show(empty)


# JSON and files


def strict_json(value):
    return json.loads(json.dumps(value, allow_nan=False))


def test_to_dict_and_payload():
    record, shown = strict_json(town().to_dict()), strict_json(town().payload())
    assert record["scores"] == SCORES.tolist()
    assert record["outputs"] == shown["outputs"] == [3, 4, 5, 6, 7]
    assert Tokens.from_dict(record["tokens"]) == town().tokens
    assert shown["kind"] == "generation"
    data = np.frombuffer(base64.b64decode(shown["data"]), "<f4").reshape(shown["shape"])
    assert data.tolist() == SCORES.tolist()
    assert [word["positions"] for word in shown["words"]] == [[0], [1], [2], [3, 4], [5], [6], [7]]
    assert [each["text"] for each in shown["sentences"]] == ["Two towns.", "Paris.", "Yes", "</s>"]


def test_saved_and_loaded(tmp_path):
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    for name, each in {"one": town(), "other": town(pictures={"image": picture})}.items():
        loaded = Generation.load(each.save(tmp_path / name))
        for field in (field.name for field in fields(Generation)):
            before, after = getattr(each, field), getattr(loaded, field)
            if field == "pictures":
                assert all(np.array_equal(before[key], after[key]) for key in {**before, **after})
            elif isinstance(before, np.ndarray):
                same_array(before, after)
            else:
                assert before == after, field
        assert loaded.code() == each.code()


def test_an_explanation_is_no_generation(tmp_path):
    with pytest.raises(ResultFileError, match="holds 'explanation', not 'generation'"):
        Generation.load(film().save(tmp_path / "a"))


def test_code_can_be_run_again():
    tree = ast.parse(town().code())
    call = next(node for node in ast.walk(tree) if getattr(node, "keywords", None))
    assert call.func.attr == "explain_generation"
    given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
    assert given["max_new_tokens"] == 5
    assert given["method"] == "gradient_attention"


# Sinks


def test_without_sinks():
    scores = SCORES.copy()
    scores[:, 0] = 100.0
    full = town(scores=scores)
    share = 100.0 / (SCORES[:, 1:].mean(axis=0).sum() + 100.0)
    assert [sink.position for sink in full.sinks] == [0]
    assert full.sinks[0].share == pytest.approx(share)
    rest = full.without_sinks()
    assert rest.scores[:, 0].tolist() == [0.0] * 5
    assert rest.scores[:, 1:].tolist() == SCORES[:, 1:].tolist()
    assert full.scores[0, 0] == 100.0
    assert f"'Two' (held {share:.0%} of the score)" in rest.notes[-1]
    assert rest.row(1).code().endswith(").without_sinks().row(1)")
    assert rest.without_sinks() is rest
    assert replace(full, origin=origin(signed=True)).sinks == ()


# How it shows itself


def show(generation, width=80):
    out = StringIO()
    Console(file=out, width=width).print(generation)
    return out.getvalue()


@pytest.mark.parametrize("width", [20, 80])
def test_in_a_terminal(width):
    assert "Paris" in show(town(), width)


def test_in_a_notebook_and_on_a_page(tmp_path):
    assert "Paris" in town()._repr_html_()
    hostile = "</script><img src=x onerror=alert(1)>"
    tokens = replace(town().tokens, texts=(*PIECES[:7], hostile))
    page = town(tokens=tokens, notes=(hostile,)).to_html(tmp_path / "page.html").read_text()
    assert "<img" not in page
    assert page.count("</script>") == 2


def test_tables_are_frames():
    assert isinstance(town().aggregate(), pd.DataFrame)
