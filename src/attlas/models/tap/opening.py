"""Opening a model: a `with` block in which its attention is read and rewritten.

One attention function is registered for the process. It calls the eager function of the model's own
modelling file, so everything that file does to its attention still happens. The taps that are open
in the current context then read the weights, rewrite them and mix the values again. A tapped model
is locked, so that edits from two threads cannot mix. Taps may be closed in any order, from any
thread.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

from torch import Tensor, nn

from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import Anatomy, anatomy
from attlas.models.facts.hooks import Hooks
from attlas.models.facts.model_lock import hold
from attlas.models.tap.call import Call, Seen
from attlas.models.tap.eager_attention import run_eager
from attlas.models.tap.edits import Edit
from attlas.models.tap.fused import is_proven, prove, run_fused
from attlas.models.tap.origins import takes_both
from attlas.models.tap.softmax_watch import SoftmaxWatch
from attlas.models.tap.tap import Tap
from attlas.restoring import here, placing
from attlas.results import Site

AnyTap = TypeVar("AnyTap", bound=Tap)


@contextmanager
def tap(
    model: nn.Module,
    edits: Sequence[Edit] = (),
    *,
    gradients: bool = False,
    wants: Callable[[Site], bool] | None = None,
    keep: Callable[[Call], Call] | None = None,
) -> Iterator[Seen]:
    """Open a model at its attention within the block, and restore it afterwards.

    With `gradients`, the attention of every site is part of the autograd graph even if nothing
    below it is. `wants` chooses the sites to read; the others use fused attention where the family
    allows it. `keep` gets each call and returns a smaller one to hold. Taps may be nested: an inner
    tap sees the attention that the outer ones have edited.
    """
    known = anatomy(model)
    with opened_by(Tap(model, known.owners, edits, gradients, wants, keep), known) as opened:
        yield opened.seen


@contextmanager
def opened_by(
    opened: AnyTap, known: Anatomy, implementation: str | None = None
) -> Iterator[AnyTap]:
    """Put this tap in place within the block, and restore the model afterwards.

    `implementation` is the attention implementation to set, by default the one that the model's
    anatomy names.
    """
    _register()
    model = opened.model
    with placing(opened) as placed:
        hold(model, placed)
        opened.notice_backends(known.configurations)
        name = implementation or known.implementation
        with internals.implementation(known.configurations, name):
            _watch(opened, known, Hooks(placed))
            with SoftmaxWatch(opened) if known.has_second_road else nullcontext():
                yield opened


def open_taps() -> list[Tap]:
    """The taps that are open in the current context, the outermost first."""
    return here(Tap)


def is_tapped(model: nn.Module) -> bool:
    """Whether a tap is open on this model in the current context."""
    return any(each.model is model for each in open_taps())


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *args: Any,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """The registered attention function: run eager attention and show it to the open taps."""
    opened = [each for each in open_taps() if each.owns(module)]
    if opened:
        attention_mask = opened[0].complete(module, query, key, attention_mask, kwargs)
        streams = (query, key, value)
        taken = opened[-1].take_over(module, streams, attention_mask, kwargs, opened[:-1])
        if taken is not None:
            return taken, None
    unread = [each for each in opened if each.passes_through(module, query.shape[1])]
    fused = None
    if opened and len(unread) == len(opened):
        fused = run_fused(module, (query, key, value), attention_mask, kwargs)
        if fused is not None and is_proven(module):
            return fused, None
    output, weights = run_eager(module, query, key, value, attention_mask, *args, **kwargs)
    if fused is not None:
        prove(module, fused, output)
    for each in opened:
        if each not in unread:
            output, weights = each.meet(module, weights, value, attention_mask, output)
    return output, weights


def _watch(opened: Tap, known: Anatomy, hooks: Hooks) -> None:
    """Tell the tap about passes and attention calls."""

    def end(_module: nn.Module, _arguments: Any, output: Any) -> None:
        opened.end(failed=output is None)

    for owner in known.owners:
        hooks.before(owner.module, opened.arrive, with_kwargs=True)
        if owner.road != "interface":
            hooks.after(owner.module, opened.leave, always_call=True)
    if takes_both(opened.model):
        opened.origins.watch(opened.model, hooks)
    for model in known.submodels:
        hooks.before(model, lambda *_: opened.begin())
        hooks.after(model, end, always_call=True)


@cache
def _register() -> None:
    internals.register(attend, (internals.IMPLEMENTATION, internals.WITH_BOOLEAN_MASKS))
