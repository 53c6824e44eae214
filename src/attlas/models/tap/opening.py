"""Opening a model: a `with` block in which its attention is read and rewritten.

One attention function is registered for the process. It calls the eager function of the model's own
modelling file, so everything that file does to its attention still happens. The taps that are open
in the current context then read the weights, rewrite them and mix the values again. A tapped model
is locked, so that edits from two threads cannot mix.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import Anatomy, anatomy
from attlas.models.facts.evaluation_mode import model_lock
from attlas.models.facts.sites import Owner
from attlas.models.tap.call import Call, Seen
from attlas.models.tap.eager_attention import run_eager
from attlas.models.tap.edits import Edit
from attlas.models.tap.fused import is_proven, prove, run_fused
from attlas.models.tap.origins import takes_both
from attlas.models.tap.softmax_watch import SoftmaxWatch
from attlas.models.tap.tap import Tap, open_taps
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
    with ExitStack() as stack:
        stack.enter_context(model_lock(model))
        opened.notice_backends(known.configurations)
        name = implementation or known.implementation
        stack.enter_context(internals.implementation(known.configurations, name))
        for handle in _watch(opened, known):
            stack.callback(handle.remove)
        token = open_taps.set((*open_taps.get(), opened))
        stack.callback(open_taps.reset, token)
        if known.has_second_road:
            stack.enter_context(SoftmaxWatch(opened))
        yield opened


def is_tapped(model: nn.Module) -> bool:
    """Whether a tap is open on this model in the current context."""
    return any(each.model is model for each in open_taps.get())


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
    opened = [each for each in open_taps.get() if each.owns(module)]
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


def _watch(opened: Tap, known: Anatomy) -> Iterator[RemovableHandle]:
    """Hooks that tell the tap about passes and attention calls, in its own context only."""

    def is_open() -> bool:
        return opened in open_taps.get()

    def begin(*_: Any) -> None:
        if is_open():
            opened.begin()

    def end(_module: nn.Module, _arguments: Any, output: Any) -> None:
        if is_open():
            opened.end(failed=output is None)

    for owner in known.owners:
        arrive = partial(_arrive, opened, owner)
        yield owner.module.register_forward_pre_hook(arrive, with_kwargs=True)
        if owner.road != "interface":
            leave = partial(_leave, opened, owner)
            yield owner.module.register_forward_hook(leave, always_call=True)
    if takes_both(opened.model):
        yield from opened.origins.watch(opened.model, is_open)
    for model in known.submodels:
        yield model.register_forward_pre_hook(begin)
        yield model.register_forward_hook(end, always_call=True)


def _arrive(opened: Tap, owner: Owner, _: nn.Module, args: Any, kwargs: Any) -> None:
    if opened in open_taps.get():
        opened.arrive(owner, args, kwargs)


def _leave(opened: Tap, owner: Owner, *_: Any) -> None:
    if opened in open_taps.get():
        opened.leave(owner)


@cache
def _register() -> None:
    internals.register(attend)
