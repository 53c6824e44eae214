"""Ctrl-C at a chosen moment: a KeyboardInterrupt where Python looks for one.

It looks at the start of each function and behind each call of a function in C.
"""

import sys
import threading

import torch

# The files that put things in place and take them away.
CHANGING = (
    *("attlas/restoring", "contextlib", "facts/hooks", "facts/model_lock", "facts/evaluation_mode"),
    *("loading/planned_attention", "tap/opening", "facts/transformers_internals"),
    *("nn/modules/module", "utils/hooks"),
)


class Interrupted(KeyboardInterrupt):
    """The interrupt of a test."""


class _Moments:
    """Counts the moments in files whose path has one of these words, and interrupts at one."""

    def __init__(self, within, last=None):
        self.within, self.last, self.count = within, last, 0

    def __call__(self, frame, event, _):
        if event not in ("call", "c_return"):
            return
        if not any(name in frame.f_code.co_filename for name in self.within):
            return
        self.count += 1
        if self.last is not None and self.count > self.last:
            sys.setprofile(None)
            raise Interrupted


def _run(moments, work):
    assert threading.current_thread() is threading.main_thread()
    sys.setprofile(moments)
    try:
        work()
    finally:
        sys.setprofile(None)


def interrupt_at(number, work, within=("",)):
    """Run the work with one interrupt, at a moment counted from 0; False if it ended before."""
    moments = _Moments(within, number)
    try:
        _run(moments, work)
    except Interrupted:
        return True
    return moments.count > number


def count_moments(work, within=("",)):
    """How many such moments some work has."""
    moments = _Moments(within)
    _run(moments, work)
    return moments.count


def state_of(model):
    """What an interrupt may not change: modes, what is frozen, hooks, forwards, settings, bits."""
    modules = list(model.modules())
    return (
        torch.is_grad_enabled(),
        torch._C._functorch.get_dynamic_layer_stack_depth(),
        [module.training for module in modules],
        [each.requires_grad for each in model.parameters()],
        [len(each._forward_hooks) + len(each._forward_pre_hooks) for each in modules],
        ["forward" in vars(each) for each in modules],
        [vars(each.config).get("use_cache") for each in modules if hasattr(each, "config")],
        [each.config._attn_implementation for each in modules if hasattr(each, "config")],
        [each.data_ptr() for each in model.parameters()],
    )


def is_free(model):
    """Whether another thread can take the model."""
    from attlas.models.facts.evaluation_mode import evaluation_mode

    def enter():
        with evaluation_mode(model):
            entered.append(True)

    entered = []
    other = threading.Thread(target=enter, daemon=True)
    other.start()
    other.join(5)
    return entered == [True]
