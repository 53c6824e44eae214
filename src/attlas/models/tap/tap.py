"""The tap: a `with` block in which attention is read and rewritten at sites.

One attention function is registered for the process. It calls the modelling file's own eager
function, so whatever that file does to its attention stays done; the taps that are open in the
current context then see the weights, rewrite them and mix the values again. A model is held by a
lock while it is tapped, so two threads with different edits cannot mix.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attlas.errors import UnsupportedModelError
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import Anatomy, anatomy
from attlas.models.facts.evaluation_mode import model_lock
from attlas.models.facts.sites import Owner
from attlas.models.tap.edits import Edit
from attlas.models.tap.fused import is_proven, prove, run_fused
from attlas.models.tap.origins import Origins, takes_both
from attlas.models.tap.softmax_watch import SoftmaxWatch
from attlas.results import Site

_open_taps: ContextVar[tuple["Tap", ...]] = ContextVar("attlas_open_taps", default=())
_mixing_checked: set[type[nn.Module]] = set()


@dataclass(frozen=True, eq=False)
class Call:
    """One attention as it was used: its weights after the edits, the mask and the values."""

    site: Site
    path: str  # of the module that owns it
    weights: Tensor
    mask: Tensor | None
    values: Tensor | None  # for `keep` to see; None on the second road, and not held by itself

    @property
    def visible(self) -> Tensor:
        """Which keys each query may see, `[batch, 1 or head, query, key]`."""
        return find_visible(self.mask, self.weights)


@dataclass(eq=False)
class Seen:
    """What a tap saw, a list of calls for each forward pass; short names are of the last one."""

    passes: list[list[Call]] = field(default_factory=list)

    @property
    def calls(self) -> list[Call]:
        """The calls of the last forward pass."""
        return self.passes[-1] if self.passes else []

    @property
    def sites(self) -> list[Site]:
        """The sites of the last forward pass, in the order of call."""
        return [call.site for call in self.calls]

    @property
    def weights(self) -> list[Tensor]:
        """The attention at each of the sites, `[batch, head, query, key]`."""
        return [call.weights for call in self.calls]


class Tap:
    """An open tap on one model: counts what owns an attention against what was met."""

    def __init__(
        self,
        model: nn.Module,
        owners: Sequence[Owner],
        edits: Sequence[Edit] = (),
        gradients: bool = False,
        wants: Callable[[Site], bool] | None = None,
        keep: Callable[[Call], Call] | None = None,
    ) -> None:
        self.model = model
        self.edits = edits
        self.gradients = gradients
        self.wants = wants
        self.keep = keep
        self.seen = Seen()
        self._owners = {id(owner.module): owner for owner in owners}
        self._places: dict[int, tuple[str, int]] = {}  # the kind and number of a module's call
        self._numbers: Counter[str] = Counter()
        self._unmet: Counter[str] = Counter()
        self._depth = 0
        self.origins = Origins(lambda: self in _open_taps.get())
        self._inside: list[Owner] = []  # the attention modules on the second road being run

    def owns(self, module: nn.Module) -> bool:
        """Whether this module belongs to the tapped model."""
        return id(module) in self._owners

    def begin(self) -> None:
        """A whole model is called: a new pass, if no other is under way."""
        if self._depth == 0:
            self.seen.passes.append([])
            self._numbers.clear()
            self._unmet.clear()
        self._depth += 1

    def end(self, failed: bool) -> None:
        """A whole model is done: by now every attention module that ran must have been met."""
        self._depth -= 1
        unmet = +self._unmet
        if self._depth == 0 and unmet and not failed:
            raise UnsupportedModelError(
                f"{type(self.model).__name__} was not opened whole: {sum(unmet.values())} of the "
                f"calls to its attention modules were not seen ({', '.join(list(unmet)[:3])}); "
                f"{len(self.seen.calls)} were"
            )

    def arrive(self, owner: Owner, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """An attention module is called: number it within its kind, and expect its attention."""
        kind = owner.kind_of_call(args, kwargs, self.origins.of)
        self._places[id(owner.module)] = (kind, self._numbers[kind])
        self._numbers[kind] += 1
        self._unmet[owner.path] += 1
        if owner.road == "softmax":
            self._inside.append(owner)

    def leave(self, owner: Owner) -> None:
        """An attention module is done, or has failed."""
        if self._inside and self._inside[-1] is owner:
            self._inside.pop()

    def is_inside(self) -> bool:
        """Whether an attention module on the second road is being run."""
        return bool(self._inside)

    def meet_softmax(self, weights: Tensor, visible: Tensor) -> Tensor:
        """Read the attention that a module's own softmax gave, and rewrite it."""
        owner = self._inside[-1]
        shape, per_head = weights.shape, apart(owner, weights)
        if self._unmet[owner.path] < 1:
            raise UnsupportedModelError(
                f"{type(owner.module).__name__} takes more than one softmax: its attention comes "
                "in pieces and cannot be opened"
            )
        used = self._use(owner, per_head, visible.reshape(per_head.shape), None)
        return weights if used is weights else used.reshape(shape)

    def meet(
        self,
        module: nn.Module,
        weights: Tensor,
        values: Tensor,
        mask: Tensor | None,
        output: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Read the attention of one call, rewrite it, and mix the values again if it changed."""
        used = self._use(self._owners[id(module)], weights, mask, values)
        if used is not weights:
            check_mixing(module, weights, values, output)
            output = mix(used, values)
        return output, used

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Sequence["Tap"],
    ) -> Tensor | None:
        """The attention output of a call, from a tap that computes it itself; None otherwise.

        It then owes the `outer` taps the edits that they hand down.
        """
        return None

    def hand_down(self, module: nn.Module, heads: int) -> list[Edit]:
        """The edits of a call that an inner tap computes, which this one does not read."""
        owner = self._owners[id(module)]
        site = self._site(owner, heads)
        if self.wants is None or self.wants(site):
            return []  # stays unmet, which is an error when the pass ends
        self._unmet[owner.path] -= 1
        return [edit for edit in self.edits if edit.touches(site)]

    def passes_through(self, module: nn.Module, heads: int) -> bool:
        """Whether the attention of this call is neither read nor rewritten."""
        if self.wants is None:
            return False
        owner = self._owners[id(module)]
        site = self._site(owner, heads)
        if self.wants(site) or any(edit.touches(site) for edit in self.edits):
            return False
        self._unmet[owner.path] -= 1
        return True

    def _use(
        self, owner: Owner, weights: Tensor, mask: Tensor | None, values: Tensor | None
    ) -> Tensor:
        """The weights to go on with: edited, part of the graph if asked, and written down."""
        self._unmet[owner.path] -= 1
        site = self._site(owner, weights.shape[1])
        used = weights
        for edit in self.edits:
            if edit.touches(site):
                used = edit.rewrite(site, used, find_visible(mask, weights))
        if self.gradients and not used.requires_grad:
            used = used.detach().requires_grad_()
        if self.wants is None or self.wants(site):
            held = None if self.keep is None else values
            self._write_down(Call(site, owner.path, used, mask, held))
        return used

    def _write_down(self, call: Call) -> None:
        if not self.seen.passes:
            self.seen.passes.append([])
        self.seen.calls.append(call if self.keep is None else self.keep(call))

    def _site(self, owner: Owner, heads: int) -> Site:
        kind, number = self._places.get(id(owner.module), (owner.kind, 0))
        return Site(kind, number, heads)


@contextmanager
def tap(
    model: nn.Module,
    edits: Sequence[Edit] = (),
    *,
    gradients: bool = False,
    wants: Callable[[Site], bool] | None = None,
    keep: Callable[[Call], Call] | None = None,
) -> Iterator[Seen]:
    """Open a model at its attention, and leave it as it was found.

    With `gradients`, the attention of every site is part of the graph even where nothing below it
    is, so that autograd can be asked for it. `wants` chooses the sites to read: the others pass
    through, on fused attention where the family allows it. `keep` is given each call as it comes
    and gives what to hold of it, a call with less in it. Taps nest: an inner one gets what the
    outer ones made.
    """
    known = anatomy(model)
    with opened_by(Tap(model, known.owners, edits, gradients, wants, keep), known) as opened:
        yield opened.seen


@contextmanager
def opened_by(opened: Tap, known: Anatomy) -> Iterator[Tap]:
    """Put a tap in place, and leave the model as it was found."""
    _register()
    model = opened.model
    with ExitStack() as stack:
        stack.enter_context(model_lock(model))
        stack.enter_context(internals.implementation(known.configurations, known.implementation))
        for handle in _watch(opened, known):
            stack.callback(handle.remove)
        token = _open_taps.set((*_open_taps.get(), opened))
        stack.callback(_open_taps.reset, token)
        if known.has_second_road:
            stack.enter_context(SoftmaxWatch(opened))
        yield opened


def is_open(model: nn.Module) -> bool:
    """Whether a model is tapped here, so that what it does now is not all its own."""
    return any(each.model is model for each in _open_taps.get())


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *args: Any,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """The registered attention function: the module's own eager one, seen by the open taps."""
    opened = [each for each in _open_taps.get() if each.owns(module)]
    if opened:
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


def run_eager(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Attention as the modelling file's own eager function computes it."""
    eager = internals.eager_attention(type(module))
    if eager is None:
        raise UnsupportedModelError(f"{type(module).__name__} names no eager attention of its own")
    return eager(module, *args, **kwargs)


def mix(weights: Tensor, values: Tensor) -> Tensor:
    """Mix the values by the weights: `[batch, query, head, width]`; grouped heads share values."""
    groups = weights.shape[1] // values.shape[1]
    shared = values if groups == 1 else values.repeat_interleave(groups, dim=1)
    return torch.matmul(weights, shared).transpose(1, 2).contiguous()


def check_mixing(module: nn.Module, weights: Tensor, values: Tensor, output: Tensor) -> None:
    """Once for each kind of module: its output must be its values mixed by its weights."""
    if type(module) in _mixing_checked:
        return
    mixed = mix(weights, values)
    tolerance = 1e-5 if output.dtype in (torch.float32, torch.float64) else 1e-2
    if mixed.shape != output.shape or not torch.allclose(mixed, output, tolerance, tolerance):
        raise UnsupportedModelError(
            f"{type(module).__name__} can be read but not edited: its output is not its values "
            "mixed by its attention weights"
        )
    _mixing_checked.add(type(module))


def find_visible(mask: Tensor | None, weights: Tensor) -> Tensor:
    """Which keys each query may see, `[batch, 1 or head, query, key]`."""
    if mask is None:
        return weights.new_ones((1, 1, 1, 1), dtype=torch.bool).expand(
            weights.shape[0], 1, *weights.shape[2:]
        )
    seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    seen = seen[..., : weights.shape[-1]]
    return seen.expand(weights.shape[0], seen.shape[1], *weights.shape[2:])


def _watch(opened: Tap, known: Anatomy) -> Iterator[RemovableHandle]:
    """Hooks that tell the tap of passes and attention modules called, in its own context only."""

    def is_open() -> bool:
        return opened in _open_taps.get()

    def begin(*_: Any) -> None:
        if is_open():
            opened.begin()

    def end(_module: nn.Module, _arguments: Any, output: Any) -> None:
        if is_open():
            opened.end(failed=output is None)

    for owner in known.owners:
        arrive = partial(_arrive, opened, owner)
        yield owner.module.register_forward_pre_hook(arrive, with_kwargs=True)
        if owner.road == "softmax":
            leave = partial(_leave, opened, owner)
            yield owner.module.register_forward_hook(leave, always_call=True)
    if takes_both(opened.model):
        yield from opened.origins.watch(opened.model)
    for model in known.submodels:
        yield model.register_forward_pre_hook(begin)
        yield model.register_forward_hook(end, always_call=True)


def _arrive(opened: Tap, owner: Owner, _: nn.Module, args: Any, kwargs: Any) -> None:
    if opened in _open_taps.get():
        opened.arrive(owner, args, kwargs)


def _leave(opened: Tap, owner: Owner, *_: Any) -> None:
    if opened in _open_taps.get():
        opened.leave(owner)


def apart(owner: Owner, weights: Tensor) -> Tensor:
    """The weights of a softmax as `[batch, head, query, key]`; an error where they are not that."""
    heads = internals.count_heads(owner.module)
    if weights.ndim == 3 and heads and weights.shape[0] % heads == 0:  # batch and head in one
        return weights.reshape(-1, heads, *weights.shape[1:])
    if weights.ndim != 4 or (heads is not None and weights.shape[1] != heads):
        raise UnsupportedModelError(
            f"{type(owner.module).__name__} cannot be opened: its softmax is over "
            f"{tuple(weights.shape)}, not [batch, {heads or 'head'}, query, key]"
        )
    return weights


@cache
def _register() -> None:
    internals.register(attend)
