"""Tokens removed: scores, and curves of three orders."""

import numpy as np
import pytest

import attlas

TEXT = "a warm and funny film"
ASKED = {"model": "sentiment", "input": {"text": TEXT}}


@pytest.mark.parametrize("removal", ["delete", "mask"])
def test_a_text_without_a_word_is_asked_again(post, removal):
    found = post("remove", **ASKED, removal=removal, sets=[[], [2], [1, 3]])
    subject = attlas.load("sentiment")
    changed = {
        "delete": ["a warm and funny film", "a and funny film", "warm funny film"],
        "mask": [
            "a warm and funny film",
            "a [MASK] and funny film",
            "[MASK] warm [MASK] funny film",
        ],
    }
    expected = subject.predict(changed[removal])
    assert set(expected["label"]) == {"POSITIVE"} and found["target"] == "POSITIVE"
    scores = [each["score"] for each in found["without"]]
    np.testing.assert_allclose(scores, expected["probability"], atol=1e-6)
    assert found["whole"]["score"] == pytest.approx(scores[0])
    assert found["removable"] == [1, 2, 3, 4, 5]
    assert all(each["chosen"] for each in found["without"])


def test_the_curve_of_a_method_follows_its_order(post):
    found = post("curves", **ASKED, method="leave_one_out")
    own, random, best = found["curves"]
    assert (own["name"], random["name"], best["name"]) == ("leave_one_out", "random", "best")
    sets = [own["order"][:count] for count in found["counts"]]
    without = post("remove", **ASKED, removal="mask", sets=sets)["without"]
    np.testing.assert_allclose(own["scores"], [each["score"] for each in without], atol=1e-6)
    explained = attlas.explain(attlas.load("sentiment"), TEXT, "leave_one_out")
    expected = sorted(range(1, 6), key=lambda place: -explained.scores[place])
    assert own["order"] == expected
    assert best["mean"] <= own["mean"] + 1e-6 and best["mean"] <= random["mean"] + 1e-6
    share = (random["mean"] - own["mean"]) / (random["mean"] - best["mean"])
    assert found["standing"] == pytest.approx(share)
    ends = {each["scores"][0] for each in found["curves"]}
    assert max(ends) - min(ends) < 1e-6


def test_the_seed_decides_the_random_orders(post):
    same = [post("curves", **ASKED, method="gradient", seed=seed)["curves"] for seed in (0, 0, 1)]
    assert same[0][1]["scores"] == same[1][1]["scores"] != same[2][1]["scores"]


@pytest.mark.parametrize(
    "body",
    [
        {**ASKED, "sets": [[0]]},  # special
        {**ASKED, "sets": [[77]]},
        {**ASKED, "sets": []},
        {**ASKED, "sets": [[1]], "removal": "burn"},
    ],
)
def test_what_cannot_be_removed_is_refused(client, body):
    assert client.post("/api/remove", json=body).status_code == 422


def test_a_curve_needs_two_tokens(client):
    body = {"model": "sentiment", "input": {"text": "good"}}
    assert client.post("/api/curves", json=body).status_code == 422
