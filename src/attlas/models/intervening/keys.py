"""Keys of attention: read them, exchange them, and see whether the weights follow an exchange."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.sites import Owner
from attlas.models.tap.call import Call, SiteKeys
from attlas.models.tap.eager_attention import run_eager
from attlas.models.tap.opening import opened_by
from attlas.models.tap.tap import Tap
from attlas.results import Site

CAPS = ("softcap", "s_aux")  # arguments of families that cap scores or have attention sinks
Rewriting = Callable[[Site, Tensor], Tensor]  # keys `[batch, key, feature]` to new keys


@dataclass(frozen=True, eq=False)
class WithKeys:
    """A pass with other keys: the output, the keys before, and the attention after."""

    logits: Tensor
    keys: dict[Site, Tensor]  # as the model made them, `[batch, key, feature]`, heads side by side
    calls: dict[Site, Call]


def run_with_keys(
    question: Question, sites: Collection[Site], rewriting: Rewriting = lambda _, keys: keys
) -> WithKeys:
    """Run the question with the keys of these sites rewritten; in a graph if grad is enabled.

    Keys are taken after position has been encoded into them; heads of a group share one key.
    """
    model = question.subject.model
    known = anatomy(model)
    tap = _RewritingTap(model, known.owners, sites, rewriting)
    with opened_by(tap, known):
        logits = run_logits(question)
    missing = [site.name for site in sites if site not in tap.calls]
    if missing:
        raise UnsupportedModelError(
            f"the keys of {question.subject.name} cannot be exchanged: those of its "
            f"attention at {missing[0]} are not accessible"
        )
    return WithKeys(logits, tap.keys, tap.calls)


class _RewritingTap(Tap):
    """A tap that computes the attention of some sites itself, with other keys."""

    def __init__(
        self,
        model: nn.Module,
        owners: Sequence[Owner],
        sites: Collection[Site],
        rewriting: Rewriting,
    ) -> None:
        super().__init__(model, owners, wants=lambda _: False)
        self.sites = set(sites)
        self.rewriting = rewriting
        self.keys: dict[Site, Tensor] = {}
        self.calls: dict[Site, Call] = {}

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Sequence[Tap],
    ) -> Tensor | None:
        """The attention output with other keys; None leaves other sites to the model."""
        query, key, value = streams
        owner = self._owners[id(module)]
        parts = self._parts(owner, query.shape[1])
        chosen = [part for part in parts if part.site in self.sites]
        if not chosen:
            return None
        self._unmet[owner.path] -= 1
        new = torch.cat([self._rewritten(part, part.among(key)) for part in parts], dim=2)
        output, weights = run_eager(module, query, new, value, mask, **given)
        for part in chosen:
            seen = None if mask is None else part.of(mask)
            self.calls[part.site] = Call(part.site, owner.path, part.of(weights), seen, None)
        return output

    def _rewritten(self, part: SiteKeys, key: Tensor) -> Tensor:
        """The new keys of one site, `[batch, head, key, width]`."""
        if part.site not in self.sites:
            return key
        flat = self.keys[part.site] = key.transpose(1, 2).flatten(2)
        new: Tensor = self.rewriting(part.site, flat).unflatten(2, (key.shape[1], -1))
        return new.transpose(1, 2).to(key)


def exchanges_columns(subject: OpenModel, inputs: Inputs) -> dict[str, bool]:
    """For each site, by name: whether reversing the keys reverses the weights.

    It does not if a position bias is added to the scores. Sites whose keys are not accessible are
    left out.
    """
    known = anatomy(subject.model)
    made = _ReversingTap(subject.model, known.owners, wants=lambda _: False)
    made.found = {}
    with torch.no_grad(), evaluation_mode(subject.model), opened_by(made, known):
        subject.model(**inputs.of_model, **subject.no_cache)
    return made.found


class _ReversingTap(Tap):
    found: dict[str, bool]

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Sequence[Tap],
    ) -> None:
        """Compare the weights of reversed keys, and leave the call to the model."""
        query, key, value = streams
        turned = None if mask is None else mask.flip(-1)
        _, own = run_eager(module, query, key, value, mask, **given)
        _, other = run_eager(module, query, key.flip(-2), value, turned, **given)
        close = torch.allclose(own.flip(-1), other, rtol=1e-3, atol=1e-5)
        for part in self._parts(self._owners[id(module)], query.shape[1]):
            self.found[part.site.name] = close and not _is_biased(mask)


def _is_biased(mask: Tensor | None) -> bool:
    """Whether a mask does more than hide keys."""
    if mask is None or mask.dtype == torch.bool:
        return False
    return not bool(((mask == 0) | (mask <= torch.finfo(mask.dtype).min / 2)).all())


class KeyTap(Tap):
    """A tap that records the keys of each call and leaves the call to the model."""

    def __init__(self, model: nn.Module, owners: Sequence[Owner], names: Collection[str]) -> None:
        super().__init__(
            model, owners, wants=lambda site: site.name in names, keep=_without_attention
        )
        self.names = names
        self.keys: dict[str, Tensor] = {}

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Any,
    ) -> None:
        """Record the keys, `[batch, head, key, feature]`, repeated for grouped heads."""
        query, key, _ = streams
        first, *others = self._parts(self._owners[id(module)], query.shape[1])
        capped = any(given.get(name) is not None for name in CAPS)
        if first.site.name in self.names and not others and not capped:
            grouped = query.shape[1] // key.shape[1]
            self.keys[first.site.name] = key.detach().repeat_interleave(grouped, dim=1)


def read_keys(question: Question, sites: Collection[Site]) -> dict[str, Tensor]:
    """The keys at these sites by name, after position has been encoded into them.

    Sites are left out if their weights are not the softmax of the scores of queries and keys plus a
    bias: in families that compute attention themselves, cap its scores, have attention sinks or
    attend to two streams in one softmax.
    """
    model = question.subject.model
    known = anatomy(model)
    tap = KeyTap(model, known.owners, {site.name for site in sites})
    with torch.no_grad(), evaluation_mode(model), opened_by(tap, known):
        run_logits(question)
    return tap.keys


def _without_attention(call: Call) -> Call:
    return replace(call, weights=call.weights.new_empty(0), mask=None, values=None)
