"""Target: one number of the model's output, worked out by hand."""

import json
from math import exp, log

import pytest
import torch

from attlas import Target
from attlas.errors import UnknownNameError, UsageError
from attlas.models.encoding.target import score_each

LOGITS = torch.tensor([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])  # [place, choice]


def softmax(place, choice):
    row = [exp(float(value)) for value in LOGITS[place]]
    return row[choice] / sum(row)


def sigmoid(value):
    return 1 / (1 + exp(-value))


def number(target, of):
    return float(target.score(LOGITS, of))


def test_one_choice():
    target = Target("b", ((-2, 1),))
    assert number(target, "logit") == 2.0
    assert number(target, "probability") == pytest.approx(softmax(0, 1))
    assert target.quantity("logit") == "logit"
    assert target.quantity("probability") == "probability"


def test_sigmoid():
    target = Target("b", ((-1, 2),), "sigmoid")
    assert number(target, "logit") == 3.0
    assert number(target, "probability") == pytest.approx(sigmoid(3.0))


def test_a_value_is_neither_logit_nor_probability():
    target = Target("score", ((-1, 2),), "identity")
    assert number(target, "logit") == number(target, "probability") == 3.0
    assert target.quantity("logit") == target.quantity("probability") == "value"


def test_several_choices_happen_together():
    target = Target("from b to c", ((-2, 1), (-1, 2)))
    assert number(target, "logit") == 5.0
    assert number(target, "probability") == pytest.approx(softmax(0, 1) * softmax(1, 2))


def test_a_string_of_tokens_has_a_log_probability():
    target = Target("bc", ((-2, 1), (-1, 2)), chained=True)
    expected = log(softmax(0, 1)) + log(softmax(1, 2))
    assert number(target, "logit") == number(target, "probability") == pytest.approx(expected)
    assert target.quantity("logit") == target.quantity("probability") == "log-probability"


def test_a_contrast_is_taken_away():
    target = Target("c", ((-1, 2),), contrast=((-1, 0),), contrast_name="a")
    assert number(target, "logit") == 3.0
    assert number(target, "probability") == pytest.approx(softmax(1, 2) - softmax(1, 0))
    other = Target("c", ((-1, 2),), contrast=((-2, 0),))
    assert number(other, "logit") == 2.0


def test_half_precision_is_widened_and_float64_is_kept():
    target = Target("b", ((-2, 1),))
    assert target.score(LOGITS.bfloat16(), "probability").dtype == torch.float32
    assert target.score(LOGITS.double(), "probability").dtype == torch.float64


def test_a_small_probability_is_not_lost():
    far = torch.tensor([[0.0, -80.0]])
    target = Target("b", ((-1, 1), (-1, 1)), chained=True)
    assert float(target.score(far, "logit")) == pytest.approx(-160)


def test_first_place():
    assert Target("c", ((-1, 2),)).first_place() == -1
    assert Target("c", ((-1, 2),), contrast=((-4, 0),)).first_place() == -4


@pytest.mark.parametrize("pick", [(-3, 0), (-1, 3), (-1, -1)])
def test_picks_must_be_there(pick):
    with pytest.raises(UsageError, match="this output has 2 places of 3 choices"):
        Target("x", (pick,)).check(LOGITS)


def test_check_gives_the_target_back():
    target = Target("b", ((-2, 1),), contrast=((-1, 0),))
    assert target.check(LOGITS) is target


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"picks": ()}, "at least one choice"),
        ({"picks": ((0, 1),)}, "counted from the end: -1 is the last"),
        ({"picks": ((-1, 1),), "contrast": ((1, 0),)}, "counted from the end"),
        ({"picks": ((-1, 1),), "contrast": ((-1, 1),)}, "the contrast is the target itself, 'x'"),
    ],
)
def test_what_no_target_is(given, message):
    with pytest.raises(UsageError, match=message):
        Target("x", **given)


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="did you mean 'softmax'"):
        Target("x", ((-1, 0),), "softmaks")
    with pytest.raises(UnknownNameError, match=r"unknown quantity 'logits': did you mean 'logit'"):
        number(Target("x", ((-1, 0),)), "logits")


def test_goes_through_json():
    target = Target("c", ((-1, 2),), "sigmoid", ((-2, 0),), "a", position=4)
    assert Target.from_dict(json.loads(json.dumps(target.to_dict()))) == target


def test_targets_scored_together_are_scored_as_alone():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(7, 4, 5, generator=generator, dtype=torch.float64)
    targets = [
        Target("one", ((-1, 2),)),
        Target("other", ((-3, 0),)),
        Target("chain", ((-2, 1), (-1, 4)), chained=True),
        Target("many", ((-1, 3),), link="sigmoid"),
        Target("value", ((-1, 0),), link="identity"),
        Target("against", ((-1, 1),), contrast=((-1, 2),)),
        Target("last", ((-1, 4),)),
    ]
    for of in ("logit", "probability"):
        alone = torch.stack([t.score(row, of) for t, row in zip(targets, logits, strict=True)])
        torch.testing.assert_close(score_each(targets, logits, of), alone)


def test_either_of_several_choices():
    target = Target("a or c", ((-1, 0), (-1, 2)), contrast=((-1, 1),), either=True)
    assert number(target, "logit") == pytest.approx((0.0 + 3.0) / 2 - -1.0)
    shares = [softmax(1, choice) for choice in range(3)]
    assert number(target, "probability") == pytest.approx(shares[0] + shares[2] - shares[1])
    for of in ("logit", "probability"):
        alone = Target("b", ((-1, 1),))
        both = score_each([target, alone], torch.stack([LOGITS, LOGITS]), of)
        assert both.tolist() == pytest.approx([number(target, of), number(alone, of)])
    assert Target.from_dict(json.loads(json.dumps(target.to_dict()))) == target
