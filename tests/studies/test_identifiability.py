"""The study of identifiability: encoders by their definition, and its rules."""

import pytest
import torch

from attlas.data.example import Example
from attlas.embedded.training.train_facts import PAD
from attlas.studies.support import identifiable_encoder as encoders
from attlas.studies.support.small_transformer import Architecture, make_lesson, train_classifier
from attlas.studies.tables.hidden_states import LINEAR, claims_on_states, layers_table

WORDS = [f"word{number}" for number in range(60)]
EXAMPLES = [
    Example(" ".join(WORDS[start : start + length]), label)
    for start, length, label in ((0, 4, "a"), (3, 7, "b"), (5, 40, "a"), (9, 20, "b"))
]


@pytest.mark.parametrize("kind", encoders.KINDS)
def test_null_spaces_follow_the_rank_law(kind):
    lesson = make_lesson(EXAMPLES, 100)
    torch.manual_seed(0)
    model = encoders.KINDS[kind](lesson.tokenizer.get_vocab_size(), 2).eval()
    width = {"usual": 8, "identifiable": 32}[kind]
    found = encoders.judge_encoder(model, lesson, EXAMPLES)["freedom"]
    # [CLS] and [SEP] are two more tokens.
    assert found == [[n + 2, max(0, n + 2 - width)] for n in (4, 7, 40, 20)]


def test_padding_changes_no_answer():
    lesson = make_lesson(EXAMPLES, 100)
    torch.manual_seed(0)
    model = encoders.usual(lesson.tokenizer.get_vocab_size(), 2).eval()
    ids = torch.tensor([lesson.rows[0]])
    longer = torch.nn.functional.pad(ids, (0, 5), value=PAD)
    one, other = (model(each, attention_mask=(each != PAD).long()).logits for each in (ids, longer))
    torch.testing.assert_close(one, other)


def test_heads_are_added_not_their_features():
    torch.manual_seed(0)
    model = encoders.identifiable(50, 2).eval()
    ids = torch.arange(5, 12)[None]
    states = model.embed(ids)
    mixed = torch.zeros(7, 32)
    for head in range(4):  # each head by itself, as defined
        part = slice(32 * head, 32 * head + 32), slice(16 * head, 16 * head + 16)
        value = states[0] @ model.value.weight[part[0]].T + model.value.bias[part[0]]
        query, key = (
            states[0] @ each.weight[part[1]].T + each.bias[part[1]]
            for each in (model.query, model.key)
        )
        mixed += (query @ key.T / 4).softmax(dim=-1) @ value
    after = model.first(states[0] + mixed)
    after = model.second(after + model.feed(after))
    expected = model.answer(after[0])
    found = model(ids, attention_mask=torch.ones_like(ids)).logits[0]
    torch.testing.assert_close(found, expected)


def test_training_is_repeatable_by_its_seed():
    size = Architecture(layers=1, heads=2, width=16, steps=2, batch=2)
    one, same, other = (
        train_classifier(EXAMPLES, size, seed=seed, device=None) for seed in (3, 3, 4)
    )
    weights = [each.model.classifier.weight for each in (one, same, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])
    assert one.labels == ("a", "b") or list(one.labels) == ["a", "b"]


def states(alike, rates, other, own, special):
    long = 12
    return {
        "width": 8,
        "figures": {
            "keys": [6.0] * 3 + [float(10 + n) for n in range(long)],
            "raw with effective": [1.0] * 3 + [alike - 0.01 * n for n in range(long)],
            "raw weight on other special": [0.3] * (3 + long),
            "effective weight on other special": [0.3] * 3 + [special] * long,
        },
        "recovered": {"linear, cosine": rates},
        "own": own,
        "other": other,
    }


def test_claims_on_states_are_decided_by_their_rules():
    good = states(0.9, [0.95, 0.8], [0.1, 0.3], [0.4, 0.2], special=0.1)
    assert {claim.verdict for claim in claims_on_states([good])} == {"reproduced"}
    bad = states(0.9, [0.3, 0.4], [0.1, 0.9], [0.2, 0.4], special=0.5)
    verdicts = [claim.verdict for claim in claims_on_states([bad])]
    assert verdicts == ["reproduced", "reproduced", *["not reproduced"] * 5]


def test_layers_are_counted_as_those_of_maps():
    one = {"recovered": {LINEAR: [1.0, 0.9]}, "own": [0.5, 0.4], "other": [0.0, 0.1]}
    names = [row.name for row in layers_table([one]).rows]
    assert names[:2] == ["layer 0: recovered", "layer 1: recovered"] and len(names) == 6


def test_claims_on_encoders_are_decided_over_seeds():
    def seed(gain, free):
        return {
            "usual": {"accuracy": 0.8, "freedom": [[20, 12], [40, 32]]},
            "identifiable": {"accuracy": 0.8 + gain, "freedom": [[20, free], [40, 8 + free]]},
        }

    good = encoders.claims_on_encoders([seed(0.01, 0), seed(0.0, 0)])
    assert [claim.verdict for claim in good] == ["partly", "reproduced", "reproduced"]
    bad = encoders.claims_on_encoders([seed(-0.1, 40)] * 3)
    assert [claim.verdict for claim in bad] == ["not reproduced"] * 3
