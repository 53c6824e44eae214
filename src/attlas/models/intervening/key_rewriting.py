"""Keys put in the place of a model's own, at any number of sites, in one pass."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.sites import Owner
from attlas.models.tap.call import Call
from attlas.models.tap.eager_attention import run_eager
from attlas.models.tap.opening import opened_by
from attlas.models.tap.tap import Tap
from attlas.results import Site

Rewriting = Callable[[Site, Tensor], Tensor]  # of keys, `[batch, key, feature]`, to the same


@dataclass(frozen=True, eq=False)
class WithKeys:
    """A pass in which keys were looked at: the output, the keys before, the attention after."""

    logits: Tensor
    keys: dict[Site, Tensor]  # as the model made them, `[batch, key, feature]`, heads side by side
    calls: dict[Site, Call]


def run_with_keys(
    question: Question, sites: Collection[Site], rewriting: Rewriting = lambda _, keys: keys
) -> WithKeys:
    """Run the question with the keys of these sites rewritten, in a graph if there is one.

    Keys are those that queries are compared with: after their position has been turned into them,
    and one for each group where heads share them.
    """
    model = question.subject.model
    known = anatomy(model)
    tap = _RewritingTap(model, known.owners, sites, rewriting)
    with opened_by(tap, known):
        logits = run_logits(question)
    missing = [site.name for site in sites if site not in tap.calls]
    if missing:
        raise UnsupportedModelError(
            f"the keys of {question.subject.name} cannot be exchanged: its attention at "
            f"{missing[0]} keeps them to itself"
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
        """The attention output with other keys; a site that is not asked for is left alone."""
        query, key, value = streams
        owner = self._owners[id(module)]
        site = self._site(owner, query.shape[1])
        if site not in self.sites:
            return None
        self._unmet[owner.path] -= 1
        flat = key.transpose(1, 2).flatten(2)
        new = self.rewriting(site, flat).unflatten(2, (key.shape[1], -1)).transpose(1, 2)
        output, weights = run_eager(module, query, new.to(key), value, mask, **given)
        self.keys[site] = flat
        self.calls[site] = Call(site, owner.path, weights, mask, None)
        return output
