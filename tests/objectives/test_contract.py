"""What every objective owes: a value for each text, whose gradient is that of its definition,
on every family, and nothing of it left in the model."""

import pytest
import torch
from learners import EXAMPLES, FAMILIES, InDouble, classifier, step_of
from part_folders import check_files

from attlas.catalogue import catalogue
from attlas.errors import UnknownNameError, UsageError
from attlas.objectives import OBJECTIVES
from attlas.objectives.support.objective import NEEDS, Aim, read_aims

each_objective = pytest.mark.parametrize("name", OBJECTIVES.names())
each_family = pytest.mark.parametrize("family", FAMILIES)
# The direction in which it moves keys depends on the weights and is held fixed in training: its own
# test compares the gradient with the direction held.
MOVES = {"adversarial_keys"}


def value(name, model, seed=5, **options):
    torch.manual_seed(seed)
    return Aim(name, 1.0, options).values(step_of(model))


def test_every_objective_has_its_file_its_test_and_its_page():
    check_files(OBJECTIVES)


@each_objective
def test_what_its_reader_must_know_is_there(name):
    record = OBJECTIVES[name]
    assert set(record.needs) <= set(NEEDS) and record.passes >= 0
    assert record.reading.endswith(".") and record.does_not_show.endswith(".")
    assert record.summary.endswith(".")
    facts = catalogue("objective")[name]
    assert set(facts.described) == set(record.options), "describe each option under Args:"


@each_objective
@each_family
def test_it_has_a_value_for_each_text_and_a_gradient_in_training_mode(name, family):
    model = classifier(family).train()
    found = value(name, model)
    assert found.shape == (len(EXAMPLES),) and torch.isfinite(found).all()
    found.mean().backward()
    slopes = [each.grad for each in model.parameters() if each.grad is not None]
    assert slopes and all(torch.isfinite(each).all() for each in slopes)
    assert any(each.abs().max() > 1e-7 for each in slopes)


@pytest.mark.parametrize("name", [each for each in OBJECTIVES.names() if each not in MOVES])
@each_family
def test_its_gradient_is_that_of_finite_differences(name, family):
    model = classifier(family, dropout=0.0).double()
    with InDouble():
        slope, expected = along_a_direction(model, lambda: value(name, model).sum())
    assert slope == pytest.approx(expected, rel=1e-6, abs=1e-9) and abs(slope) > 1e-6


def along_a_direction(model, asked, size=1e-6):
    """How a value moves along a random direction of the weights: its gradient, and measured."""
    weights = list(model.parameters())
    torch.manual_seed(0)
    ways = [torch.randn_like(each) for each in weights]
    slopes = torch.autograd.grad(asked(), weights, allow_unused=True)
    pairs = zip(slopes, ways, strict=True)
    slope = sum(float((s * way).sum()) for s, way in pairs if s is not None)

    def moved(far):
        with torch.no_grad():
            for each, way in zip(weights, ways, strict=True):
                each.add_(way, alpha=far)
        found = float(asked().detach())
        with torch.no_grad():
            for each, way in zip(weights, ways, strict=True):
                each.sub_(way, alpha=far)
        return found

    # Five points: the error is of the fourth order.
    near, far = moved(size) - moved(-size), moved(2 * size) - moved(-2 * size)
    return slope, (8 * near - far) / (12 * size)


@each_objective
def test_it_follows_the_seed_and_leaves_no_hook(name):
    model = classifier()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    first, again = value(name, model), value(name, model)
    assert torch.equal(first, again)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    for module in model.modules():
        assert not module._forward_hooks and not module._forward_pre_hooks
    assert model.config._attn_implementation == "sdpa"
    assert all(each.requires_grad for each in model.parameters())


@each_objective
def test_it_has_a_value_in_half_precision(name):
    model = classifier().bfloat16()
    found = value(name, model)
    assert found.dtype == torch.float32 and torch.isfinite(found).all()


@each_objective
def test_wrong_options_are_refused_in_one_line(name):
    with pytest.raises(UnknownNameError, match=f"unknown option of {name} 'layre'"):
        read_aims(f"{name}:layre=1")
    if "layer" in OBJECTIVES[name].options:
        with pytest.raises(UsageError, match=f"layer of {name} is a whole number from -2 to 1"):
            value(name, classifier(), layer=7)


def test_objectives_are_read_as_users_write_them():
    (aim,) = read_aims("rationale:weight=0.5,layer=-1/-2,rows=all")
    assert aim == Aim("rationale", 0.5, {"layer": (-1, -2), "rows": "all"})
    assert read_aims(str(aim)) == (aim,)
    assert read_aims(["conicity", "masked:weight=2"]) == (Aim("conicity"), Aim("masked", 2.0))
    assert read_aims("permuted-keys") == (Aim("permuted_keys"),)
    assert read_aims(None) == read_aims("conicity:weight=0") == ()
    for wrong, told in (
        ("conicty", "did you mean 'conicity'"),
        ("conicity:weight=much", "weight of conicity is a number"),
        ("conicity:weight=-1", "weight of conicity is 0 or more"),
        ("conicity:weight", "NAME=VALUE"),
    ):
        with pytest.raises(UsageError, match=told):
            read_aims(wrong)


def test_what_needs_marks_says_so():
    for name in ("rationale", "deception"):
        with pytest.raises(UsageError, match=f"{name} needs texts with marked words"):
            Aim(name).values(step_of(classifier(), marked=False))
