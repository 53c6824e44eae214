"""Explanations: tables, words, JSON, code, saving; and how they show themselves."""

import ast
import json
from base64 import b64decode
from dataclasses import asdict, fields
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from results.records import JSON, any_explanation, film, maps, origin, same_array, same_maps
from rich.console import Console

from attlas.errors import ResultFileError, UnknownNameError, UsageError
from attlas.results import Explanation, TargetRecord
from attlas.tokens import Tokens

BROAD = settings(deadline=None, max_examples=50, suppress_health_check=list(HealthCheck))
HOSTILE = "</script><img src=x onerror=alert(1)>"


def strict_json(value):
    return json.loads(json.dumps(value, allow_nan=False))


# What it holds


def test_scores_are_one_for_each_token():
    with pytest.raises(UsageError, match=r"7 tokens but scores of shape \(3,\)"):
        film(scores=np.zeros(3))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_scores_are_finite(wrong):
    with pytest.raises(UsageError, match="finite"):
        film(scores=np.array([0.0, 1.0, wrong, 0.0, 0.0, 0.0, 0.0]))


def test_method_and_segments():
    assert film().method == "gradient_attention"
    assert film().segments == ("text",) * 7


def test_options_are_kept_as_json_has_them():
    given = {
        "layers": (0, 1),
        "weight": np.float32(0.5),
        "count": np.int64(3),
        "on": np.bool_(True),
        "array": np.arange(2),
        "nested": {"a": (1, (2,)), 3: None},
        "limit": float("inf"),
        "device": torch.device("cpu"),
    }
    assert origin(options=given).options == {
        "layers": [0, 1],
        "weight": 0.5,
        "count": 3,
        "on": True,
        "array": [0, 1],
        "nested": {"a": [1, [2]], "3": None},
        "limit": "inf",
        "device": "cpu",
    }
    assert film(prediction=({"label": "A", "value": np.float32(2.0)},)).prediction == (
        {"label": "A", "value": 2.0},
    )


# Tables


def test_to_pandas():
    table = film().to_pandas()
    assert list(table.columns) == ["token", "score", "special", "segment", "start", "end"]
    assert list(table["token"]) == ["[CLS]", "not", "good", "film", "##s", "!", "[SEP]"]
    assert list(table["score"]) == [0.5, -2.0, 1.0, 0.25, 0.5, 0.125, 0.0]
    assert list(table["special"]) == [True, False, False, False, False, False, True]
    assert list(table["start"][1:6]) == [0, 4, 9, 13, 14]
    assert list(table["end"][1:6]) == [3, 8, 13, 14, 15]
    assert table["start"].isna().tolist() == [True] + [False] * 5 + [True]
    assert str(table["start"].dtype) == "Int64"


def test_aggregate_words():
    table = film().aggregate()
    assert list(table.columns) == ["word", "score", "special", "segment", "positions"]
    assert list(table["word"]) == ["[CLS]", "Not", "good", "films", "!", "[SEP]"]
    assert list(table["score"]) == [0.5, -2.0, 1.0, 0.75, 0.125, 0.0]
    assert list(table["positions"]) == [(0,), (1,), (2,), (3, 4), (5,), (6,)]
    assert list(table["special"]) == [True, False, False, False, False, True]


def test_aggregate_by_tokens_or_by_something_else():
    pd.testing.assert_frame_equal(film().aggregate("tokens"), film().to_pandas())
    with pytest.raises(UnknownNameError, match="unknown level 'word': did you mean 'words'"):
        film().aggregate("word")


def test_words_are_summed_in_full_precision():
    tokens = Tokens(("a", "b"), ((0, 1), (1, 2)), (False,) * 2, ("text",) * 2, {"text": "ab"})
    large = film(tokens=tokens, scores=np.array([60000, 60000], dtype=np.float16))
    assert large.aggregate()["score"].tolist() == [120000.0]


@BROAD
@given(any_explanation())
def test_tables_of_anything(make):
    explanation = make()
    total, scores = explanation.aggregate()["score"].sum(), explanation.scores.astype(np.float64)
    assert abs(total - scores.sum()) <= 1e-12 * np.abs(scores).sum()
    assert len(explanation.to_pandas()) == len(explanation.tokens)
    assert isinstance(repr(explanation), str)
    assert len(explanation.top(2)) <= 2


def test_top():
    assert film().top(2) == [("Not", -2.0), ("good", 1.0)]
    with pytest.raises(UsageError, match="top takes a number of words, 0 or more, not -1"):
        film().top(-1)
    assert [word for word, _ in film().top(99)] == ["Not", "good", "films", "!"]


def test_no_tokens_at_all():
    empty = film(tokens=Tokens((), (), (), ()), scores=np.zeros(0))
    assert len(empty.to_pandas()) == len(empty.aggregate()) == 0
    assert empty.top() == []
    assert strict_json(empty.payload())["tokens"] == []


# JSON


def test_to_dict():
    record = strict_json(film().to_dict())
    known = {"tokens", "scores", "target", "origin", "prediction", "notes", "details"}
    assert set(record) == known
    assert record["scores"] == [0.5, -2.0, 1.0, 0.25, 0.5, 0.125, 0.0]
    assert Tokens.from_dict(record["tokens"]) == film().tokens
    assert record["target"] == asdict(film().target)
    assert record["origin"]["options"] == {"layer": -1, "positive": False}


def test_a_pair_differs_from_two_words():
    pair = film(origin=origin(asked={"text": ("a", "b")})).to_dict()
    words = film(origin=origin(asked={"text": ["a", "b"]})).to_dict()
    assert strict_json(pair)["origin"]["asked"]["text"] == {"pair": ["a", "b"]}
    assert strict_json(words)["origin"]["asked"]["text"] == ["a", "b"]


def test_payload():
    shown = strict_json(film(maps=None).payload())
    assert (shown["kind"], shown["version"], shown["pictures"], shown["maps"]) == (
        "explanation",
        1,
        [],
        None,
    )
    assert shown["tokens"][4] == {
        "text": "##s",
        "label": "s",
        "special": False,
        "segment": "text",
        "start": 13,
        "end": 14,
        "score": 0.5,
    }
    assert shown["words"][3] == {
        "text": "films",
        "score": 0.75,
        "special": False,
        "segment": "text",
        "positions": [3, 4],
    }


@BROAD
@given(any_explanation())
def test_anything_is_json(make):
    explanation = make()
    strict_json(explanation.to_dict())
    strict_json(explanation.payload())


# Saving


def check_round_trip(explanation):
    with TemporaryDirectory() as folder:
        path = explanation.save(Path(folder, "explanation.safetensors"))
        loaded = Explanation.load(path)
    for name in (field.name for field in fields(Explanation)):
        before, after = getattr(explanation, name), getattr(loaded, name)
        if name == "scores":
            same_array(before, after)
        elif name == "maps" and before is not None:
            same_maps(before, after)
        else:
            assert before == after, name
    assert strict_json(loaded.to_dict()) == strict_json(explanation.to_dict())
    assert loaded.code() == explanation.code()


@BROAD
@given(any_explanation())
def test_anything_is_saved_and_loaded(make):
    check_round_trip(make())


@pytest.mark.parametrize(
    "text", [("a", "b"), ["a", "b"], [["a", "b"]], [101, 7, 102], "plain", ("", "")]
)
def test_what_was_asked_comes_back(text):
    check_round_trip(film(origin=origin(asked={"text": text, "position": 2})))


def test_scores_that_lie_apart_in_memory():
    check_round_trip(film(scores=np.arange(14.0, dtype=np.float32)[::2]))


def test_with_maps():
    check_round_trip(film(maps=maps(film().tokens, signed=True)))


def test_what_json_cannot_hold_is_not_written(tmp_path):
    wrong = film(target=TargetRecord("A", "logit", float("nan")))
    with pytest.raises(ResultFileError, match="cannot write"):
        wrong.save(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written(tmp_path):
    with pytest.raises(ResultFileError, match="No such file or directory"):
        film().save(tmp_path / "missing" / "a")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ResultFileError, match="cannot write"):
        film().save(tmp_path / "folder")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


# Pictures


def test_with_a_picture(tmp_path):
    picture = np.arange(600 * 1030 * 3, dtype=np.uint8).reshape(600, 1030, 3)
    seen = film(pictures={"image": picture, "image 2": picture[:2]})
    same_array(Explanation.load(seen.save(tmp_path / "a")).pictures["image"], picture)
    same_array(Explanation.load(tmp_path / "a").pictures["image 2"], picture[:2])
    kind, data = seen.payload()["pictures"][0]["image"].split(",")
    assert kind == "data:image/png;base64"
    assert Image.open(BytesIO(b64decode(data))).size == (512, 298)


def test_a_small_picture_is_shown_as_it_is():
    picture = np.random.default_rng(0).integers(0, 255, (5, 7, 3), dtype=np.uint8)
    data = film(pictures={"image": picture}).payload()["pictures"][0]["image"].split(",")[1]
    assert np.array_equal(np.asarray(Image.open(BytesIO(b64decode(data)))), picture)


@pytest.mark.parametrize("shape", [(2, 2, 4), (0, 2, 3), (2, 2, 1)])
def test_what_is_no_picture(shape):
    with pytest.raises(UsageError, match="three colours"):
        film(pictures={"image": np.zeros(shape, dtype=np.uint8)})


# Code


def arguments(code):
    """The text and the options of the call in these lines."""
    tree = ast.parse(code)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    call = next(node for node in calls if getattr(node.func, "attr", "") == "explain")
    return call.args[1], {each.arg: ast.literal_eval(each.value) for each in call.keywords}


@BROAD
@given(text=st.text() | st.tuples(st.text(), st.text()) | st.lists(st.integers()), value=JSON)
def test_code_says_what_was_asked(text, value):
    explanation = film(origin=origin(asked={"text": text}, options={"value": value}))
    given_text, options = arguments(explanation.code())
    assert ast.literal_eval(given_text) == text
    assert options["method"] == "gradient_attention"
    assert options.get("value") == value


@pytest.mark.parametrize("text", [["not", "good"], [["not", "good"]]])
def test_code_for_words_asks_for_one_text_of_a_list(text):
    code = film(origin=origin(asked={"text": text})).code()
    assert ast.literal_eval(arguments(code)[0]) == [["not", "good"]]
    assert code.endswith(")[0]")


def test_code_for_a_picture():
    tokens = Tokens(
        ("0,0", "0,1"), (None,) * 2, (False,) * 2, ("image",) * 2, grids={"image": (1, 2)}
    )
    asked = origin(asked={"text": "Image"})
    code = film(tokens=tokens, scores=np.zeros(2), origin=asked).code()
    assert isinstance(arguments(code)[0], ast.Name)
    assert "image = ..." in code


def test_code_for_a_picture_and_a_text():
    tokens = Tokens(
        ("0,0", "0,1"), (None,) * 2, (False,) * 2, ("image",) * 2, grids={"image": (1, 2)}
    )
    asked = origin(asked={"text": ("Image", "a cat")})
    code = film(tokens=tokens, scores=np.zeros(2), origin=asked).code()
    assert ast.unparse(arguments(code)[0]) == "(image, 'a cat')"


def test_code_for_an_explanation_from_elsewhere():
    ast.parse(film(origin=origin(asked={}, options={})).code())


# How it shows itself


def hostile():
    source = f"a {HOSTILE}\n"
    spans = ((0, 1), (2, len(source) - 1), (len(source) - 1, len(source)))
    tokens = Tokens(("a", HOSTILE, "Ċ"), spans, (False,) * 3, ("text",) * 3, {"text": source})
    target = TargetRecord(HOSTILE, "logit", 1.0)
    scores = np.array([0.5, 0.25, -1.0])
    return film(tokens=tokens, scores=scores, target=target, notes=(HOSTILE,))


def test_markup_in_a_text_is_text(tmp_path):
    assert "<img" not in hostile()._repr_html_()
    assert "</script" not in hostile()._repr_html_()
    page = hostile().to_html(tmp_path / "page.html").read_text()
    assert "<img" not in page
    assert page.count("</script>") == 2


def test_repr():
    assert repr(film()) == (
        "Explanation(gradient_attention of NEGATIVE: Not -2.000, good +1.000, films +0.750)"
    )
    assert "\n" not in repr(hostile())


@pytest.mark.parametrize("width", [20, 80])
def test_in_a_terminal(width):
    out = StringIO()
    Console(file=out, width=width, force_terminal=True).print(film())
    assert "films" in out.getvalue()
    assert "NEGATIVE" in out.getvalue()


TWO = ({"label": "NEGATIVE", "probability": 0.75}, {"label": "POSITIVE", "probability": 0.25})


@pytest.mark.parametrize(
    ("target", "question"),
    [
        (TargetRecord("NEGATIVE", "logit", 1.5), "Why NEGATIVE?"),
        (TargetRecord("POSITIVE", "logit", -1.5), "What speaks for POSITIVE?"),
        (
            TargetRecord("NEGATIVE", "logit", 1.5, contrast="POSITIVE"),
            "Why NEGATIVE rather than POSITIVE?",
        ),
        (TargetRecord("NEGATIVE", "logit", 1.5, position=4), "Why NEGATIVE at “films”?"),
        (TargetRecord("NEGATIVE", "value", 1.8372), "Why NEGATIVE 1.837?"),
        (TargetRecord("NEGATIVE", "value", -1.8372), "Why NEGATIVE −1.837?"),
    ],
)
def test_the_headline_is_the_question(target, question):
    found = film(target=target, prediction=TWO)
    assert found.headline == found.payload()["headline"] == question
