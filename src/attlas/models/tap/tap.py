"""Tap: what one open tap does with each attention of its model.

It numbers the calls into sites, rewrites the weights by its edits, writes down what was asked for,
and makes sure that no attention passed unseen.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.sites import NAMED, Owner, refuse_named
from attlas.models.tap.call import Call, Seen, SiteKeys, join
from attlas.models.tap.eager_attention import check_mixing, mask_of_fused, mix
from attlas.models.tap.edits import Edit
from attlas.models.tap.origins import Origins
from attlas.models.tap.softmax_watch import Pieces
from attlas.results import Site


class Tap:
    """An open tap on one model.

    It compares the attention modules that ran with the attention that it saw: none may be missed.
    """

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
        self._home: torch.device | None = None  # where all attention is handed out: of the first
        self._owners = {id(owner.module): owner for owner in owners}
        self._backends: dict[int, str | None] = {}  # of each configuration, before it was opened
        self._places: dict[int, Sequence[SiteKeys]] = {}  # the sites of a call of each module
        self._numbers: Counter[str] = Counter()
        self._unmet: Counter[str] = Counter()
        self._heads = 0  # of the last call: those of the next are mostly as many
        self._depth = 0
        self.origins = Origins()
        self._inside: list[Owner] = []  # attention modules on the second road that are running
        self._pieces: Pieces | None = None  # of the block-sparse attention module that is running
        self._unmixed: Call | None = None  # read on the second road, until its values are found

    def owns(self, module: nn.Module) -> bool:
        """Whether this module belongs to the tapped model."""
        return id(module) in self._owners

    def notice_backends(self, configurations: Sequence[Any]) -> None:
        """Write down the attention implementations that the model came with."""
        names = internals.implementations(configurations)
        self._backends = dict(zip(map(id, configurations), names, strict=True))

    def came_with(self, module: nn.Module) -> str | None:
        """The attention implementation that this module used before the tap was opened."""
        return self._backends.get(id(getattr(module, "config", None)))

    def complete(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None,
        given: Mapping[str, Any],
    ) -> Tensor | None:
        """The mask of a call as eager attention takes it."""
        if self.came_with(module) != "sdpa":
            return mask
        return mask_of_fused(module, query, key, mask, given)

    def begin(self) -> None:
        """A model is called: start a new pass, unless one is already running."""
        if self._depth == 0:
            self.seen.passes.append([])
            self._unmixed = None
            self._numbers.clear()
            self._unmet.clear()
        self._depth += 1

    def end(self, failed: bool) -> None:
        """A model has returned: every attention module that ran must have been seen by now."""
        self._depth -= 1
        if self._depth == 0 and not failed and (unmet := +self._unmet):
            refuse_named(self._owners.values(), unmet)
            raise UnsupportedModelError(
                f"{type(self.model).__name__} was not opened completely: {sum(unmet.values())} of "
                f"the calls to its attention modules were not seen ({', '.join(list(unmet)[:3])}); "
                f"{len(self.seen.calls)} were"
            )

    def arrive(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """An attention module is called: number the call and expect its attention."""
        owner = self._owners[id(module)]
        if owner.is_merged:
            self._arrive_at_two(owner, owner.count_other_keys(args, kwargs))
        else:
            kind = owner.kind_of_call(args, kwargs, self.origins.of)
            self._places[id(module)] = _whole_site(kind, self._numbers[kind], self._heads)
            self._numbers[kind] += 1
        self._unmet[owner.path] += 1
        if owner.road != "interface":
            self._inside.append(owner)
        if owner.road == "pieces":
            self._lay_out(owner, args, kwargs)

    def _arrive_at_two(self, owner: Owner, count: int) -> None:
        """One softmax over the keys of a stream and then so many of another: two sites."""
        places = {owner.kind: slice(None, -count), "cross": slice(-count, None)}
        self._places[id(owner.module)] = [
            SiteKeys(Site(kind, self._numbers[kind], 0), keys) for kind, keys in places.items()
        ]
        self._numbers.update(places.keys())

    def _lay_out(self, owner: Owner, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Collect the pieces of an attention, read and rewrite their map, and hand it back."""
        self._pieces = Pieces(owner.module, args, kwargs)
        kept = {"past_key_values": None} if "past_key_values" in kwargs else {}
        owner.module.forward(*args, **{**kwargs, **kept})  # a cache would hold the keys twice
        weights, visible = self._pieces.finish()
        used = self.meet_softmax(weights, visible)
        if used is not weights or used.requires_grad:
            self._pieces.use(used)

    def leave(self, module: nn.Module, *_: Any) -> None:
        """An attention module has returned or failed."""
        if self._inside and self._inside[-1].module is module:
            self._inside.pop()
            self._pieces = None
            self._settle(None)

    def meet_piece(self, piece: Tensor, scores: Tensor) -> Tensor | None:
        """The weights to use for one of several softmaxes; None where a module takes only one."""
        return None if self._pieces is None else self._pieces.meet(piece, scores)

    def is_inside(self) -> bool:
        """Whether an attention module on the second road is running."""
        return bool(self._inside)

    def meet_softmax(self, weights: Tensor, visible: Tensor) -> Tensor:
        """Read and rewrite the attention that a module's own softmax computed."""
        owner = self._inside[-1]
        shape, per_head = weights.shape, split_heads(owner, weights)
        if self._unmet[owner.path] < 1:
            raise UnsupportedModelError(
                f"{type(owner.module).__name__} computes more than one softmax: its attention "
                "comes in pieces and cannot be opened"
            )
        used = self._use(owner, per_head, visible.reshape(per_head.shape), None)
        return weights if used is weights else used.reshape(shape)

    def pools(self) -> bool:
        """Whether the attention that is running pools its tokens."""
        return self._inside[-1].kind == "pooling" and self._inside[-1].module in NAMED

    def unmixed(self) -> Tensor | None:
        """The weights of an attention whose values are still to be found; None if there is none."""
        return None if self._unmixed is None else self._unmixed.weights

    def meet_values(self, values: Tensor) -> None:
        """The values that a module on the second road mixes by the weights that were just read."""
        self._settle(values)

    def _settle(self, values: Tensor | None) -> None:
        call, self._unmixed = self._unmixed, None
        if call is not None and self.keep is not None:
            self.seen.calls.append(self.keep(replace(call, values=values)))

    def meet(
        self,
        module: nn.Module,
        weights: Tensor,
        values: Tensor,
        mask: Tensor | None,
        output: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Read and rewrite the attention of one call; mix the values again if it changed."""
        self._home = self._home or weights.device
        here = weights.to(self._home)
        used = self._use(self._owners[id(module)], here, mask, values)
        if used is not here or (here is not weights and self.gradients):
            check_mixing(module, weights, values, output)
            output = mix(used.to(weights.device), values)
        return output, used.to(weights.device)

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Sequence["Tap"],
    ) -> Tensor | None:
        """Compute the attention output of a call; None leaves it to the model, the default.

        A tap that computes it must apply the edits that the `outer` taps hand down.
        """
        return None

    def hand_down(self, module: nn.Module, heads: int) -> list[Edit]:
        """The edits of this tap for a call that an inner tap computes."""
        owner = self._owners[id(module)]
        sites = [part.site for part in self._parts(owner, heads)]
        if self.wants is None or any(map(self.wants, sites)):
            return []  # the site stays unmet, an error at the end of the pass
        self._unmet[owner.path] -= 1
        return [edit for edit in self.edits if any(map(edit.touches, sites))]

    def passes_through(self, module: nn.Module, heads: int) -> bool:
        """Whether this tap neither reads nor rewrites the attention of this call."""
        if self.wants is None:
            return False
        owner = self._owners[id(module)]
        for part in self._parts(owner, heads):
            if self.wants(part.site) or any(edit.touches(part.site) for edit in self.edits):
                return False
        self._unmet[owner.path] -= 1
        return True

    def _use(
        self, owner: Owner, weights: Tensor, mask: Tensor | None, values: Tensor | None
    ) -> Tensor:
        """Rewrite and record the weights of each site of a call, and join them again."""
        self._unmet[owner.path] -= 1
        parts = self._parts(owner, weights.shape[1])
        own, used = [part.of(weights) for part in parts], []
        for part, each in zip(parts, own, strict=True):
            seen = None if mask is None else part.of(mask).to(each.device)
            kept = None if self.keep is None else values
            mixed = None if kept is None else part.among(kept).to(each.device)
            used.append(self._use_part(Call(part.site, owner.path, each, seen, mixed)))
        if len(parts) == 1:
            return used[0]
        is_same = all(new is old for new, old in zip(used, own, strict=True))
        # A part is a view beside the graph, so it must be joined to have a gradient.
        return weights if is_same and not self.gradients else join(used)

    def _use_part(self, call: Call) -> Tensor:
        """Apply the edits, add the weights to the graph if asked, and record the call."""
        site, used = call.site, call.weights
        for edit in self.edits:
            if edit.touches(site):
                used = edit.rewrite(site, used, call.visible)
        if self.gradients and not used.requires_grad:
            used = used.detach().requires_grad_()
        if self.wants is None or self.wants(site):
            self._record(call if used is call.weights else replace(call, weights=used))
        return used

    def _record(self, call: Call) -> None:
        if not self.seen.passes:
            self.seen.passes.append([])
        self._settle(None)
        if self.keep is not None and self._inside and self._pieces is None:
            self._unmixed = call
        else:
            self.seen.calls.append(call if self.keep is None else self.keep(call))

    def _parts(self, owner: Owner, heads: int) -> Sequence[SiteKeys]:
        """The sites of the current call of a module: one, or two if its softmax is merged."""
        self._heads = heads
        found = self._places.get(id(owner.module)) or _whole_site(owner.kind, 0, heads)
        if found[0].site.heads != heads:
            found = [replace(part, site=replace(part.site, heads=heads)) for part in found]
            self._places[id(owner.module)] = found
        return found


@lru_cache(maxsize=1024)
def _whole_site(kind: str, number: int, heads: int) -> tuple[SiteKeys]:
    """The only site of a call."""
    return (SiteKeys(Site(kind, number, heads), slice(None)),)


def split_heads(owner: Owner, weights: Tensor) -> Tensor:
    """The weights of a softmax as `[batch, head, query, key]`; raises if they do not fit."""
    heads = internals.count_heads(owner.module)
    if weights.ndim == 3 and heads and weights.shape[0] % heads == 0:  # batch and head in one
        return weights.reshape(-1, heads, *weights.shape[1:])
    if weights.ndim != 4 or (heads is not None and weights.shape[1] != heads):
        raise UnsupportedModelError(
            f"{type(owner.module).__name__} cannot be opened: its softmax is over "
            f"{tuple(weights.shape)}, not [batch, {heads or 'head'}, query, key]"
        )
    return weights
