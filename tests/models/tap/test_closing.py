"""Taps that are closed out of order, in other tasks or from other threads: nothing stays behind."""

import asyncio
import contextvars
import threading

import pytest
import tiny
import torch

from attlas.models.facts.hooks import OwnMode
from attlas.models.tap import edits
from attlas.models.tap.opening import tap

FAMILIES = {"bert": tiny.FAMILIES["bert"], "xlnet": tiny.SECOND_ROAD["xlnet"]}


@pytest.fixture(params=FAMILIES)
def case(request):
    return FAMILIES[request.param]()


def run(case):
    with torch.no_grad():
        return case.model(**case.inputs).logits


def tapped(case, *changes):
    with tap(case.model, changes) as seen:
        yield seen


def state(model):
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    return hooks, model.config._attn_implementation


def is_free(model):
    """Whether another thread can open the model."""

    def enter():
        with tap(model):
            opened.append(True)

    opened = []
    other = threading.Thread(target=enter, daemon=True)
    other.start()
    other.join(5)
    return opened == [True]


def test_generators_that_end_in_the_order_of_their_start(case):
    before, was = run(case), state(case.model)
    with tap(case.model, [edits.scale(0.5)]):
        scaled = run(case)
    first, second = tapped(case, edits.uniform()), tapped(case, edits.scale(0.5))
    next(first)
    next(second)
    first.close()
    assert torch.equal(run(case), scaled)  # the second one is still open
    second.close()
    assert torch.equal(run(case), before)
    assert state(case.model) == was
    assert is_free(case.model)


def test_tasks_that_take_turns_see_their_own_edits(case):
    before, was = run(case), state(case.model)
    expected = {}
    for factor in (0.0, 0.5):
        with tap(case.model, [edits.scale(factor)]):
            expected[factor] = run(case)
    assert not torch.equal(expected[0.0], expected[0.5])

    async def task(factor, turns):
        with tap(case.model, [edits.scale(factor)]):
            for _ in range(turns):
                await asyncio.sleep(0)
                assert torch.equal(run(case), expected[factor])

    async def both():
        await asyncio.gather(task(0.0, 2), task(0.5, 4))

    asyncio.run(both())
    assert torch.equal(run(case), before)
    assert state(case.model) == was
    assert is_free(case.model)


def test_a_mode_acts_in_the_context_that_it_was_entered_in_alone():
    class Doubling(OwnMode):
        def run(self, func, args, given):
            return 2 * func(*args, **given) if func is torch.relu else func(*args, **given)

    elsewhere, mode, one = contextvars.copy_context(), Doubling(), torch.ones(1)
    elsewhere.run(mode.__enter__)
    try:
        assert elsewhere.run(torch.relu, one) == 2
        assert torch.relu(one) == 1
    finally:
        elsewhere.run(mode.__exit__)


def test_a_tap_that_another_thread_closes(case):
    before, was = run(case), state(case.model)
    opened = tapped(case, edits.uniform())
    next(opened)
    assert not torch.equal(run(case), before)
    other = threading.Thread(target=opened.close)
    other.start()
    other.join()
    assert torch.equal(run(case), before)
    assert state(case.model) == was
    assert is_free(case.model)
    with tap(case.model) as seen:  # and it can be opened again where it was opened first
        run(case)
    assert seen.calls


def test_modes_that_are_closed_out_of_order_leave_the_stack_as_it_was():
    before = torch.overrides._get_current_function_mode()
    first, second = OwnMode(), OwnMode()
    first.__enter__()
    second.__enter__()
    first.__exit__()
    second.__exit__()
    found = torch.overrides._get_current_function_mode()
    while isinstance(torch.overrides._get_current_function_mode(), OwnMode):
        torch.overrides._pop_mode()  # or every later test would run within it
    assert found is before
