"""The study of bias: effects on a model whose look-up is known, and its rules."""

import json

import numpy as np
import pytest

import attlas
from attlas.errors import UsageError
from attlas.studies.bias import claims_on, concentration, measure_pairs
from attlas.studies.support.prompt_pairs import PromptPair, read_pairs, recall_pairs


@pytest.fixture(scope="module")
def recall():
    return attlas.load("recall")


def test_pairs_exchange_the_keys_of_two_values():
    for pair in recall_pairs(5, 0):
        one, other = pair.one.split(), pair.other.split()
        apart = [place for place in range(len(one)) if one[place] != other[place]]
        asked = one[-1]
        assert len(apart) == 2 and one[-1] == other[-1]
        assert one[one.index(asked) + 1] == pair.instead_of
        assert other[other.index(asked) + 1] == pair.answer


def test_attention_carries_the_look_up(recall):
    found = measure_pairs(recall, recall_pairs(4, 0))
    own, total = np.array(found["own"]), np.array(found["total"])
    # The model answers with the value behind the key, so the other prompt turns the answer.
    assert (own < 0).all() and (own + total > 0).all() and found["left out"] == 0
    # Where to look is in the attention: it alone moves the answer towards the other value.
    assert (np.array(found["all heads"]) > 0).all()
    assert np.array(found["by head"]).shape == (4, 2, 4)


def test_the_attention_of_the_same_prompt_changes_nothing(recall):
    pairs = [
        PromptPair(each.one, each.one, each.answer, each.instead_of) for each in recall_pairs(2, 1)
    ]
    found = measure_pairs(recall, pairs)
    for name in ("total", "all heads"):
        assert found[name] == pytest.approx([0, 0], abs=1e-4)
    assert np.abs(found["by head"]).max() < 1e-4


def test_prompts_of_other_lengths_are_left_out(recall):
    found = measure_pairs(recall, [PromptPair("a ant b bee a", "a ant a", "bee", "ant")])
    assert found["left out"] == 1 and found["total"] == []


def test_concentration_by_hand():
    # Of ten heads the strongest one holds 5 of 14.
    assert concentration(np.array([[5.0, -1, 1, 1, 1], [1, 1, 1, 1, 1]])) == pytest.approx(5 / 14)
    assert np.isnan(concentration(np.zeros((2, 2))))


def effects(by_head, total, joint, direct, own=(-1.0, -1.0)):
    return {
        "own": list(own),
        "kinds": ["female", "male"],
        "total": [total] * 2,
        "all heads": [joint] * 2,
        "direct": [direct] * 2,
        "by head": [by_head] * 2,
    }


def test_claims_are_decided_by_their_rules():
    sparse = [[9.0, 0.1, 0.1, 0.1, 0.1], [-2.0, 0.1, 0.1, 0.1, 0.1]]
    found = claims_on(effects(sparse, total=3.0, joint=2.0, direct=1.1))
    assert {claim.verdict for claim in found} == {"reproduced"}
    even = [[1.0] * 5] * 2
    found = claims_on(effects(even, total=3.0, joint=1.0, direct=0.5, own=(1.0, 1.0)))
    assert {claim.verdict for claim in found} == {"not reproduced"}


def test_pairs_are_read_from_a_file(tmp_path):
    path = tmp_path / "pairs.jsonl"
    pair = {"one": "a", "other": "b", "answer": " c", "instead_of": " d"}
    path.write_text(json.dumps(pair))
    assert read_pairs(str(path), 5, 0) == [PromptPair(**pair)]
    assert len(read_pairs("professions", 10, 0)) == 10
    path.write_text('{"on": 1}')
    with pytest.raises(UsageError, match="cannot be read as pairs of prompts"):
        read_pairs(str(path), 5, 0)
