"""Explain, compare and intervene: what the server answers is what Python computes."""

import json
from base64 import b64encode
from io import BytesIO

import numpy as np
import pytest
import torch

import attlas
from attlas.methods import METHODS
from attlas.models.asking.scores import target_scores
from attlas.serving.shelf import ShelvedModel
from attlas.views.map_codes import read_site

TEXT = "not a great film, but I could not look away"
ASKED = {"model": "sentiment", "input": {"text": TEXT}}


@pytest.fixture(scope="module")
def subject():
    return attlas.load("sentiment")


def weights(size):
    drawn = torch.rand(
        8, size, size, generator=torch.Generator().manual_seed(0), dtype=torch.double
    )
    return drawn / drawn.sum(-1, keepdim=True)


EDITS = [  # as a request has them, and as Python does
    ({"action": "zero", "layer": 3, "heads": [5]}, attlas.edits.scale(0).at(layer=3, heads=5)),
    ({"action": "zero", "keys": [3]}, attlas.edits.zero(3)),
    (
        {"action": "scale", "layer": 4, "heads": [1], "queries": [0], "keys": [4], "factor": 9.0},
        attlas.edits.scale(9.0).at(layer=4, heads=1, queries=0, keys=4),
    ),
    ({"action": "uniform"}, attlas.edits.uniform()),
    ({"action": "uniform", "layer": -1}, attlas.edits.uniform().at(layer=-1)),
    (
        {"action": "shuffle", "kind": "encoder", "layer": 4, "seed": 7},
        attlas.edits.permute(7).at(kind="encoder", layer=4),
    ),
    (
        {"action": "shuffle", "layer": 4, "keys": [1, 2, 3], "seed": 1},
        attlas.edits.permute(1).at(layer=4, keys=[1, 2, 3]),
    ),
    (
        {"action": "replace", "layer": 4, "weights": weights(13).tolist()},
        attlas.edits.replace(weights(13)).at(layer=4),
    ),
    (
        {
            "action": "replace",
            "layer": 4,
            "heads": [2],
            "queries": [0],
            "weights": [1.0] + 12 * [0],
        },
        attlas.edits.replace(torch.eye(13)[0]).at(layer=4, heads=2, queries=0),
    ),
    (
        {
            "action": "replace",
            "layer": 0,
            "heads": [1],
            "queries": [2],
            "keys": [3],
            "weights": [0.9],
        },
        attlas.edits.replace(torch.tensor(0.9)).at(layer=0, heads=1, queries=2, keys=3),
    ),
]


def in_python(subject, edits, target=None):
    from attlas.models.encoding.request import Request

    (question,) = subject.ask([TEXT], Request(target=target))
    return float(target_scores(question, "probability", edits)[0])


@pytest.mark.parametrize(("given", "edit"), EDITS)
def test_an_intervention_gives_what_python_computes(post, subject, given, edit):
    found = post("intervene", **ASKED, edits=[given])
    assert found["before"]["score"] == pytest.approx(in_python(subject, []), abs=1e-7)
    assert found["after"]["score"] == pytest.approx(in_python(subject, [edit]), abs=1e-7)
    assert found["moved"] == pytest.approx(abs(found["after"]["score"] - found["before"]["score"]))
    assert found["moved"] > 1e-5, "the edit does nothing, so nothing is tested"


def test_edits_are_applied_one_after_the_other(post, subject):
    two = [EDITS[3], EDITS[0]]
    found = post("intervene", **ASKED, edits=[each for each, _ in two])
    expected = in_python(subject, [each for _, each in two])
    assert found["after"]["score"] == pytest.approx(expected, abs=1e-7)
    undone = post("intervene", **ASKED, edits=[two[0][0]])
    assert undone["after"]["score"] == pytest.approx(in_python(subject, [two[0][1]]), abs=1e-7)
    nothing = post("intervene", **ASKED, edits=[])
    assert nothing["after"] == nothing["before"] and not nothing["moved"]


def test_a_flip_is_told_and_the_target_stays(post):
    found = post("intervene", **ASKED, edits=[{"action": "zero"}], target="POSITIVE")
    labels = [found[when]["prediction"][0]["label"] for when in ("before", "after")]
    assert found["target"] == "POSITIVE"
    assert found["flipped"] == (labels[0] != labels[1])
    chosen = {each["label"]: each["probability"] for each in found["after"]["prediction"]}
    assert chosen["POSITIVE"] == pytest.approx(found["after"]["score"])


def test_maps_after_an_edit_are_the_edited_ones(post, subject):
    found = post("intervene", **ASKED, edits=[{"action": "uniform", "layer": 2}], maps=True)["maps"]
    before, after = ({s["name"]: read_site(s) for s in found[w]["maps"]["sites"]} for w in found)
    np.testing.assert_allclose(after["encoder.2"], np.full((8, 13, 13), 1 / 13), rtol=1e-2)
    np.testing.assert_allclose(before["encoder.1"], after["encoder.1"])
    assert np.abs(before["encoder.3"] - after["encoder.3"]).max() > 0.01
    own = subject.attention(TEXT).payload()
    assert found["before"] == json.loads(json.dumps(own))


def test_an_intervention_pins_what_the_decoder_has_written(post):
    asked = {"model": "dates", "input": {"text": "March 3rd, 1987"}}
    found = post("intervene", **asked, edits=[{"action": "uniform", "kind": "cross"}])
    assert found["target"] == "1987-03-03"
    assert 0 <= found["after"]["score"] < found["before"]["score"] <= 1


@pytest.mark.parametrize("method", ["attattr", "attention_rollout", "gradient", None])
def test_explain_returns_the_payload_of_the_verb(post, subject, method):
    found = post("explain", **ASKED, method=method, target="NEGATIVE")["explanation"]
    expected = attlas.explain(subject, TEXT, method, "NEGATIVE").payload()
    assert found == json.loads(json.dumps(expected))
    assert post("explain", **ASKED, method=method, maps=False)["explanation"]["maps"] is None


def test_compare_returns_the_payload_of_the_verb(post, subject):
    methods = ("attattr", "gradient")
    found = post("compare", explanations=[{**ASKED, "method": each} for each in methods])
    explained = [attlas.explain(subject, TEXT, each, maps=False) for each in methods]
    expected = attlas.compare(explained).payload()
    assert found["comparison"] == json.loads(json.dumps(expected))


@pytest.mark.parametrize(
    ("name", "body", "status", "kind"),
    [
        ("explain", {**ASKED, "model": "no"}, 404, "not found"),
        ("explain", {**ASKED, "model": "../sentiment"}, 404, "not found"),
        ("explain", {**ASKED, "method": "atattr"}, 422, "unknown name"),
        ("explain", {**ASKED, "target": "MAYBE"}, 422, "unknown name"),
        ("explain", {**ASKED, "target": 7}, 422, "invalid"),
        ("explain", {**ASKED, "more": 1}, 422, "invalid"),
        ("explain", {**ASKED, "input": {}}, 422, "invalid"),
        ("explain", {**ASKED, "input": {"text": "a " * 2000}}, 422, "too long"),
        ("explain", {**ASKED, "input": {"text": "a " * 999}}, 422, "too long"),
        ("explain", {**ASKED, "input": {"picture": "bm8="}}, 422, "invalid"),
        ("intervene", {**ASKED, "edits": [{"action": "explode"}]}, 422, "invalid"),
        ("intervene", {**ASKED, "edits": [{"action": "scale"}]}, 422, "invalid"),
        ("intervene", {**ASKED, "edits": [{"action": "uniform", "factor": 1}]}, 422, "invalid"),
        ("intervene", {**ASKED, "edits": [{"action": "uniform", "layer": 9}]}, 422, "invalid"),
        ("intervene", {**ASKED, "edits": [{"action": "uniform", "heads": [8]}]}, 422, "invalid"),
        ("intervene", {**ASKED, "edits": [{"action": "zero", "keys": [99]}]}, 422, "invalid"),
        ("intervene", {**ASKED, "edits": [{"action": "uniform", "kind": "cross"}]}, 422, None),
        (
            "intervene",
            {**ASKED, "edits": [{"action": "replace", "weights": [[1.0], [1.0, 2.0]]}]},
            422,
            "invalid",
        ),
        ("compare", {"explanations": [ASKED]}, 422, "invalid"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(client, name, body, status, kind):
    answer = client.post(f"/api/{name}", json=body)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["says"] and "\n" not in error["says"]
    assert kind is None or error["kind"] == kind


def test_the_models_are_described(client):
    found = client.get("/api/models").json()
    first = found["models"][0]
    assert first["key"] == "sentiment" and first["labels"] == ["NEGATIVE", "POSITIVE"]
    assert len(first["sites"]) == 5 and first["error"] is None and first["examples"]
    assert {each["name"] for each in found["methods"]} == {each.name for each in METHODS}
    takes = {each["key"]: each["takes"] for each in found["models"]}
    assert takes == {
        "sentiment": "text", "recall": "prompt", "dates": "text", "shortcut_token": "text",
    }  # fmt: skip


def test_every_example_of_a_model_can_be_explained(client, post):
    for model in client.get("/api/models").json()["models"]:
        for given in model["examples"][:2]:
            found = post("explain", model=model["key"], input=given, method="raw_attention")
            assert found["explanation"]["tokens"]


@pytest.fixture
def shelved(client):
    """Puts a tiny model of a task on the shelf, under its task."""
    from subjects import TEXTS, subject

    shelf = client.app.laboratory.shelf

    def put(task):
        entry = ShelvedModel(task, task)
        entry.__dict__["subject"] = subject(task)
        shelf.entries[task] = entry
        return TEXTS[task]

    before = dict(shelf.entries)
    yield put
    shelf.entries.clear()
    shelf.entries.update(before)


def coded(picture):
    buffer = BytesIO()
    picture.save(buffer, "PNG")
    return b64encode(buffer.getvalue()).decode()


def test_a_picture_is_explained_and_intervened_on(client, post, shelved):
    task = "image classification"
    picture = shelved(task)[0]
    asked = {"model": task, "input": {"picture": coded(picture)}}
    found = post("explain", **asked, method="raw_attention")["explanation"]
    own = client.app.laboratory.shelf.subject(task)
    expected = attlas.explain(own, picture.convert("RGB"), "raw_attention").payload()
    assert found["tokens"] == json.loads(json.dumps(expected["tokens"])) and found["pictures"]
    moved = post("intervene", **asked, edits=[{"action": "uniform"}])
    assert moved["moved"] > 0
    assert "Image.open" in post("code", **asked)["code"]
    (described,) = (e for e in client.get("/api/models").json()["models"] if e["key"] == task)
    assert described["takes"] == "picture"


def test_a_pair_is_explained(client, post, shelved):
    task = "question answering"
    question, context = shelved(task)[0]
    asked = {"model": task, "input": {"text": question, "pair": context}}
    found = post("explain", **asked, method="raw_attention")["explanation"]
    assert {"question", "context"} <= {each["segment"] for each in found["tokens"]}
    assert post("intervene", **asked, edits=[{"action": "uniform"}])["target"]


def test_a_word_is_filled_in_at_its_own_place(post, shelved):
    task = "masked lm"
    text = shelved(task)[0]
    asked = {"model": task, "input": {"text": text}}
    found = post("intervene", **asked, edits=[{"action": "uniform", "layer": 0}])
    again = post("intervene", **asked, edits=[{"action": "uniform", "layer": 0}])
    assert found["after"] == again["after"] and 0 < found["after"]["score"] < 1
