"""How the terms of a tensor are made from those of the tensors that it was computed from."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from attlas.models.decomposing import operations
from attlas.models.decomposing import term_steps as steps
from attlas.models.decomposing import term_sums as sums
from attlas.models.decomposing.term_states import DecompositionRules, Share
from attlas.models.decomposing.terms import (
    MixedTerms,
    OwnTerms,
    TermParts,
    Terms,
    TermsAtOnce,
    TermsInParts,
    put_together,
)

Step = Callable[[Tensor], Tensor]  # acts on each term alone, and makes new ones


def through(
    state: Terms,
    step: Step,
    bias: Tensor | None = None,
    share: Share | None = None,
    places: Tensor | None = None,
) -> Terms:
    """Terms through a step, and a bias added, of which each token has a share, or none has.

    `places` are those of the result, where every number still belongs to one token.
    """
    if isinstance(state, OwnTerms) and places is not None:
        return through_own(state, step, bias, share, places)
    return from_parts(state.parts, lambda which: step(state.part(which)), bias, share)


def from_parts(
    parts: TermParts,
    make: Callable[[slice], Tensor],
    bias: Tensor | None,
    share: Share | None,
) -> Terms:
    """Terms whose parts are made anew, and a bias added."""
    if bias is None:
        return TermsInParts(parts, make)
    if share is None:
        return TermsInParts(
            parts, lambda which: with_last(make(which), bias, parts.has_last(which))
        )
    return TermsAtOnce(parts, lambda: sums.with_bias(put_together(parts, make), bias, share))


def through_own(
    state: OwnTerms, step: Step, bias: Tensor | None, share: Share | None, places: Tensor
) -> OwnTerms:
    """The same as long as tokens are not mixed: a step for all tokens at once."""

    def make() -> Tensor:
        pair = step(state.pair)
        if bias is None:
            return pair
        return with_last(pair, bias, True) if share is None else sums.with_bias(pair, bias, share)

    shape = places.shape if bias is None else torch.broadcast_shapes(places.shape, bias.shape)
    return OwnTerms(state.parts, places.expand(shape), make)


def with_last(terms: Tensor, bias: Tensor, has_last: bool) -> Tensor:
    """Add a bias that belongs to no token; the terms are changed in place."""
    terms, added = sums.spread(terms, bias)
    if has_last:
        terms[-1] += added
    return terms


def projected(
    state: Terms, weight: Tensor, bias: Tensor | None, share: Share | None, by_products: bool
) -> Terms:
    """Terms through a matrix `[out, in]`, with its bias.

    `by_products` says that shares depend on the inner products of terms with the bias alone: these
    are known before the terms are multiplied, and then no step has to hold all of the result.
    """
    if isinstance(state, MixedTerms) and state.in_rows:
        return projected_mixed(state, weight, bias, share)
    if bias is None or share is None or not by_products or not state.is_held:
        places = row_places(state, weight.shape[0])
        return through(state, lambda terms: steps.project(terms, weight), bias, share, places)
    held, whole_bias = share, bias

    @cache
    def shares() -> Tensor:
        along = whole_bias.detach().to(weight) @ weight.detach()
        return sums.all_shares(state.whole(), along, held)

    def make(which: slice) -> Tensor:
        terms = steps.project(state.part(which), weight)
        return sums.with_shares(terms, whole_bias, shares()[which])

    return TermsInParts(state.parts, make)


def projected_mixed(
    state: MixedTerms, weight: Tensor, bias: Tensor | None, share: Share | None
) -> Terms:
    """The same, of values that were just mixed."""
    rows = state.numbers.shape[:-1]

    def make(which: slice) -> Tensor:
        found = steps.project_mixed(state.weights, state.values.pair, weight, which)
        return found.reshape(len(found), *rows, -1)

    return from_parts(state.parts, make, bias, share)


def row_places(state: Terms, width: int) -> Tensor | None:
    """The places of rows of this width, made of the rows of a state; None if tokens would mix."""
    if not isinstance(state, OwnTerms) or not state.in_rows(1):
        return None
    return state.places[..., :1].expand(*state.places.shape[:-1], width)


def normed(
    state: Terms, factor: Tensor, axes: int, centred: bool, bias: Tensor | None, share: Share | None
) -> Terms:
    """Terms through a norm that multiplies each number by a factor."""
    places = state.places if isinstance(state, OwnTerms) and state.in_rows(axes) else None
    return through(
        state, lambda terms: steps.scale(terms, factor, axes, centred), bias, share, places
    )


def scaled(state: Terms, factor: Tensor | int | float, divides: bool = False) -> Terms:
    """Terms times a factor, or divided by it."""
    places = None
    if isinstance(state, OwnTerms):
        shape = factor.shape if isinstance(factor, Tensor) else ()
        fits = torch.broadcast_shapes(state.places.shape, shape) == state.places.shape
        places = state.places if fits else None
    return through(state, lambda terms: steps.scaled(terms, factor, divides), places=places)


def multiplied(both: tuple[Terms, Terms], wholes: Sequence[Tensor]) -> Terms:
    """The terms of a product whose factors both have terms."""
    first, second = both
    one, other = (steps.held(whole) for whole in wholes[:2])
    return TermsInParts(
        first.parts,
        lambda which: steps.product_of_terms(one, other, first.part(which), second.part(which)),
    )


def added(both: Sequence[tuple[Terms, float]], settles: bool, rules: DecompositionRules) -> Terms:
    """The terms of a sum of two tensors, each times its sign.

    Where it settles an attention, what belongs to no token is shared.
    """
    (first, one), (second, other) = both

    def make(which: slice) -> Tensor:
        return steps.summed(first.part(which), second.part(which), (one, other))

    def make_all() -> Tensor:
        assert rules.shared is not None
        whole = put_together(first.parts, make)
        rest = whole[-1].clone()
        whole[-1] = 0
        return sums.with_bias(whole, rest, rules.shared)

    if settles and rules.shared is not None:
        return TermsAtOnce(first.parts, make_all)
    return TermsInParts(first.parts, make)


def mixed(weights: Tensor, state: Terms) -> Terms:
    """Terms `[…, key, feature]` mixed by weights `[…, query, key]`."""
    parts = state.parts
    if (
        not isinstance(state, OwnTerms)
        or state.axis != state.places.ndim - 2
        or not state.in_rows(1)
    ):
        return TermsInParts(parts, lambda which: steps.mix(weights, state.part(which)))
    found = TermsInParts(parts, lambda which: steps.mix_own(weights, state.pair, which))
    return MixedTerms(found, weights, state) if weights.ndim == 4 else found


def each_term(
    func: Callable[..., Any], args: Any, kwargs: dict[str, Any], known: Sequence[tuple[int, Terms]]
) -> Terms | list[Terms]:
    """The terms of the result of a linear operation, or of its results; `known` is by id."""
    states = [state for _, state in known]
    step = steps.for_each_term(func, args, kwargs, [number for number, _ in known])
    parts, name = states[0].parts, func.__name__
    own, *others = states
    moves = name in operations.MOVING | operations.CASTING
    if moves and isinstance(own, OwnTerms) and not others:
        return moved(own, name, step)

    def make(which: slice) -> Any:
        return step([each.part(which) for each in states])

    if moves and isinstance(own, MixedTerms) and name not in operations.SEVERAL:
        casts = name in operations.CASTING
        numbers = own.numbers if casts else step([own.numbers[None]])[0]
        return own.moved(TermsInParts(parts, make), numbers)
    if name not in operations.SEVERAL:
        return TermsInParts(parts, make)
    results, last = range(len(func(*args, **kwargs))), LastMade(make)
    return [
        TermsInParts(parts, lambda which, at=at: last(which)[at])  # type: ignore[misc]
        for at in results
    ]


def moved(
    state: OwnTerms, name: str, move: Callable[[Sequence[Tensor]], Any]
) -> Terms | list[Terms]:
    """Terms whose numbers go elsewhere, and the places of tokens with them."""
    pairs = cache(lambda: move([state.pair]))
    if name in operations.CASTING:
        return OwnTerms(state.parts, state.places, pairs)
    places = move([state.places[None]])
    if name not in operations.SEVERAL:
        return OwnTerms(state.parts, places[0], pairs)
    return [
        OwnTerms(state.parts, each[0], lambda at=at: pairs()[at])  # type: ignore[misc]
        for at, each in enumerate(places)
    ]


class LastMade:
    """Keeps what a function made of the last part that it was asked for."""

    def __init__(self, make: Callable[[slice], Any]) -> None:
        self._make = make
        self._last: tuple[slice, Any] | None = None

    def __call__(self, which: slice) -> Any:
        """What it makes of a part."""
        if self._last is None or self._last[0] != which:
            self._last = which, self._make(which)
        return self._last[1]
