"""What is handed over as text: code that runs as it is, and marks that can be trained on."""

import re

import pytest

import attlas
from attlas.serving.requests import GivenEdit
from attlas.serving.work.edits import edit_code, edit_of

TEXT = 'not a "great" film, but I could not look away'
STATE = {
    "model": "sentiment",
    "input": {"text": TEXT},
    "target": "POSITIVE",
    "method": "attattr",
    "edits": [
        {"action": "uniform", "layer": 2},
        {"action": "zero", "keys": [3]},
        {
            "action": "replace",
            "layer": 4,
            "heads": [0],
            "queries": [0],
            "keys": [3],
            "weights": [0.9],
        },
    ],
    "removed": [3, 4],
    "removal": "mask",
}


def test_the_code_runs_and_prints_the_numbers_of_the_page(post, capsys):
    code = post("code", **STATE)["code"]
    capsys.readouterr()
    exec(code, {})
    shown = capsys.readouterr().out
    asked = {name: STATE[name] for name in ("model", "input", "target")}
    explained = post("explain", **asked, method="attattr")["explanation"]
    moved = post("intervene", **asked, edits=STATE["edits"])
    left = post("remove", **asked, removal="mask", sets=[STATE["removed"]])["without"][0]
    tokens = explained["tokens"]
    printed = [float(each) for each in re.findall(r"([+-]\d+\.\d{6})$", shown, re.M)]
    assert printed == pytest.approx([each["score"] for each in tokens], abs=1e-6)
    assert f"{moved['before']['score']:.6f} before, {moved['after']['score']:.6f} after" in shown
    assert f"{left['score']:.6f} without" in shown


def test_the_code_of_a_target_of_several_tokens_gives_its_probability(post):
    asked = {"model": "dates", "input": {"text": "March 3rd, 1987"}}
    edits = [{"action": "uniform", "kind": "cross", "layer": 0}]
    code = post("code", **asked, method="raw_attention", edits=edits)["code"]
    printed = []
    exec(code, {"print": printed.append})
    moved = post("intervene", **asked, edits=edits)
    assert f"{moved['before']['score']:.6f} before" in printed[-2]
    assert f"{moved['after']['score']:.6f} after" in printed[-2]


@pytest.mark.parametrize("each", STATE["edits"])
def test_an_edit_is_made_by_the_code_that_is_shown(each):
    given = GivenEdit.model_validate(each, strict=False)
    made, shown = edit_of(given), eval(edit_code(given))
    names = ("name", "kind", "layer", "heads", "queries", "keys")
    assert [getattr(made, name) for name in names] == [getattr(shown, name) for name in names]


def test_texts_in_the_code_are_only_texts(post):
    text = "'''; import os; os.abort()  # \\"
    code = post("code", **{**STATE, "input": {"text": text}})["code"]
    assert repr(text) in code
    compile(code, "exported", "exec")


def test_marks_are_read_back_as_rationales(client, tmp_path):
    marks = [
        {"text": "a warm and funny film", "label": "POSITIVE", "spans": [[11, 16], [2, 6]]},
        {"text": "where?", "pair": "in the käse shop", "label": "shop", "spans": [[12, 16]]},
        {"text": "nothing marked", "label": None},
    ]
    file = tmp_path / "rationales.jsonl"
    for some in (marks[:1], marks[1:2], marks[2:]):
        answer = client.post("/api/rationales", json={"marks": some})
        assert answer.headers["content-type"] == "application/x-ndjson"
        file.write_bytes(answer.content)
        (read,) = attlas.read_examples(file, spans="spans").examples
        pair = some[0].get("pair")
        assert read.text == (some[0]["text"] if pair is None else (some[0]["text"], pair))
        assert read.label == some[0]["label"]
        assert [list(each) for each in read.spans] == sorted(some[0].get("spans", []))


@pytest.mark.parametrize("span", [[3, 3], [4, 2], [0, 99]])
def test_a_mark_outside_its_text_is_refused(client, span):
    body = {"marks": [{"text": "short", "spans": [span]}]}
    assert client.post("/api/rationales", json=body).status_code == 422
