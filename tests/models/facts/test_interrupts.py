"""Ctrl-C at any moment while a model is opened and closed: the model is as it was before."""

import pytest
import torch
from interrupting import CHANGING, count_moments, interrupt_at, is_free, state_of
from subjects import few
from tiny import subject_parts

import attlas
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import hooking
from attlas.models.tap import edits
from attlas.models.tap.opening import tap
from attlas.restoring import placing, settled


def test_a_verb_that_is_interrupted_undoes_what_its_blocks_left_open():
    undone, held = [], []

    @settled
    def work():
        held.append(placing())  # nobody closes it, and it is not collected either
        held[0].__enter__().note(lambda: undone.append(True))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert undone == [True]


def test_a_verb_that_is_interrupted_leaves_gradients_as_they_were():
    @settled
    def work():
        torch.set_grad_enabled(False)  # as a block of torch does that is not yet entered
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    found = torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    assert found


def test_a_verb_that_is_interrupted_leaves_no_transform_open():
    functorch = torch._C._functorch
    functorch._vmap_increment_nesting(2, "error")  # that of the caller stays open
    depth = functorch.get_dynamic_layer_stack_depth()

    @settled
    def work():
        functorch._vmap_increment_nesting(2, "error")  # `vmap` does, before its own block
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    found = functorch.get_dynamic_layer_stack_depth()
    while functorch.get_dynamic_layer_stack_depth():
        functorch._vmap_decrement_nesting()
    assert found == depth == 1
    torch.nn.Linear(2, 2).requires_grad_(False)


def test_undoing_that_is_interrupted_goes_on():
    undone = []

    def interrupted():
        undone.append("first")
        if len(undone) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), placing() as placed:
        placed.note(lambda: undone.append("last"))
        placed.note(interrupted)
    assert undone == ["first", "first", "last"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_hook_whose_handle_never_came_is_taken_away(when, monkeypatch):
    name = {"before": "register_forward_pre_hook", "after": "register_forward_hook"}[when]
    register, module = getattr(torch.nn.Module, name), torch.nn.Identity()

    def interrupted(*given, **options):
        register(*given, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.nn.Module, name, interrupted)
    with pytest.raises(KeyboardInterrupt), hooking() as hooks:
        getattr(hooks, when)(module, print)
    assert not module._forward_hooks and not module._forward_pre_hooks


@pytest.fixture
def trained():
    """A subject whose model is being trained: all of it learns, and dropout is on."""
    own = attlas.Subject(*subject_parts("sequence classification"))
    own.model.train()
    own.sites  # noqa: B018  found once
    return own


def test_at_moments_of_a_block(trained):
    @settled
    def work():
        with evaluation_mode(trained.model), tap(trained.model, [edits.uniform()]):
            pass

    work()
    before, total = state_of(trained.model), count_moments(work, CHANGING)
    for moment in range(0, total, 5):
        interrupt_at(moment, work, CHANGING)
        assert state_of(trained.model) == before, moment
    assert total > 100
    assert is_free(trained.model)
    assert torch.overrides._get_current_function_mode() is None


@pytest.mark.parametrize("method", ["raw_attention", "alti", "attn_lrp", "lrp_relevance"])
def test_at_moments_when_things_are_put_in_place(method, trained):
    """Of each explanation a few moments of the files that change the model."""

    def work():
        attlas.explain(trained, "the film was not good", method, maps=False, **few(method))

    work()
    before, total = state_of(trained.model), count_moments(work, CHANGING)
    for moment in range(7, total, max(1, total // 12)):
        assert interrupt_at(moment, work, CHANGING)
        assert state_of(trained.model) == before, moment
    assert is_free(trained.model)
