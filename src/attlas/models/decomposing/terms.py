"""Terms: a tensor as a sum with one term for each token, made a part of them at a time.

All terms of a hidden state are as many times its size as there are tokens. Most steps act on each
term alone, so a part of the terms can go through many steps while it is small enough for a
processor's cache, and no step has to hold them all.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
from torch import Tensor

# Numbers of a part: what a cache holds, and what keeps a GPU busy.
NUMBERS_AT_ONCE = {"cpu": 2**20, "cuda": 2**24}


@dataclass(frozen=True)
class TermParts:
    """How many terms there are, that of no token included, and how many are made at once."""

    count: int
    at_once: int

    @staticmethod
    def of(stream: Tensor) -> "TermParts":
        """TermParts for hidden states `[batch, token, feature]`."""
        most = NUMBERS_AT_ONCE.get(stream.device.type, NUMBERS_AT_ONCE["cpu"])
        return TermParts(stream.shape[1] + 1, max(1, most // stream.numel()))

    def __iter__(self) -> Iterator[slice]:
        for start in range(0, self.count, self.at_once):
            yield slice(start, min(start + self.at_once, self.count))

    def has_last(self, part: slice) -> bool:
        """Whether the term of no token is in a part."""
        return bool(part.stop == self.count)


class Terms(ABC):
    """The terms of one tensor, `[term, …]`: the term of each token, and last that of no token.

    Several steps may be handed the same terms: nobody may change them.
    """

    def __init__(self, parts: TermParts) -> None:
        self.parts = parts

    @abstractmethod
    def part(self, which: slice) -> Tensor:
        """The terms of a part."""

    @abstractmethod
    def whole(self) -> Tensor:
        """All terms."""

    @property
    def is_held(self) -> bool:
        """Whether all terms are there, and none has to be made."""
        return False


class TermsInParts(Terms):
    """Terms that are made from parts of other terms, a part at a time.

    The last part is kept, since several steps may ask for it.
    """

    def __init__(self, parts: TermParts, make: Callable[[slice], Tensor]) -> None:
        super().__init__(parts)
        self._make: Callable[[slice], Tensor] | None = make
        self._which = slice(0, 0)
        self._made = torch.empty(0)

    @property
    def is_held(self) -> bool:
        """Whether all terms are there, and none has to be made."""
        return self._make is None

    def part(self, which: slice) -> Tensor:
        """The terms of a part."""
        if self._make is None:
            return self._made[which]
        if which != self._which:
            with torch.no_grad():
                self._made, self._which = self._make(which), which
        return self._made

    def whole(self) -> Tensor:
        """All terms, which are held from now on."""
        if self._make is not None:
            with torch.no_grad():
                self._made, self._make = put_together(self.parts, self._make), None
        return self._made


class TermsAtOnce(Terms):
    """Terms that depend on each other: all are made when one of them is asked for first."""

    def __init__(self, parts: TermParts, make: Callable[[], Tensor]) -> None:
        super().__init__(parts)
        self._make: Callable[[], Tensor] | None = make
        self._made = torch.empty(0)

    @property
    def is_held(self) -> bool:
        """Whether all terms are there, and none has to be made."""
        return self._make is None

    def part(self, which: slice) -> Tensor:
        """The terms of a part."""
        return self.whole()[which]

    def whole(self) -> Tensor:
        """All terms."""
        if self._make is not None:
            with torch.no_grad():
                self._made, self._make = self._make(), None
        return self._made


class OwnTerms(Terms):
    """The terms of a tensor as long as tokens are not mixed: each number belongs to one token.

    `places` `[…]` says to which. `make` gives a pair `[2, …]`: what belongs to the token that is
    there, and what belongs to no token.
    """

    def __init__(self, parts: TermParts, places: Tensor, make: Callable[[], Tensor]) -> None:
        super().__init__(parts)
        self.places = places
        self._make: Callable[[], Tensor] | None = make
        self._pair = torch.empty(0)

    @property
    def pair(self) -> Tensor:
        """What belongs to the token that is there, and what to no token."""
        if self._make is not None:
            with torch.no_grad():
                self._pair, self._make = self._make(), None
        return self._pair

    @cached_property
    def axis(self) -> int | None:
        """The axis along which the tokens stand, one behind the other; None if there is none."""
        return token_axis(self.places, self.parts.count - 1)

    def in_rows(self, axes: int) -> bool:
        """Whether the numbers along the last axes always belong to the same token."""
        rows = self.places.flatten(-axes) if axes > 1 else self.places
        return bool((rows == rows[..., :1]).all())

    def part(self, which: slice) -> Tensor:
        """The terms of a part: zero but in the places of its tokens."""
        own, of_none = self.pair
        found: Tensor = own.new_zeros(which.stop - which.start, *own.shape)
        tokens = torch.arange(which.start, min(which.stop, self.parts.count - 1))
        tokens = tokens.to(own.device)
        if self.axis is None:
            mine = self.places == tokens.view(-1, *[1] * own.ndim)
            found[: len(tokens)] = own * mine
        else:
            there = found.movedim(self.axis + 1, 1)
            there[tokens - which.start, tokens] = own.movedim(self.axis, 0)[tokens]
        if self.parts.has_last(which):
            found[-1] = of_none
        return found

    def whole(self) -> Tensor:
        """All terms."""
        return put_together(self.parts, self.part)


class MixedTerms(Terms):
    """The terms of values that were their own tokens' alone, mixed by weights.

    The term of a token is its value times its weight for each query, whatever the numbers are put
    next: `numbers` says where those of `[batch, head, query, width]` have gone.
    """

    def __init__(
        self, terms: Terms, weights: Tensor, values: OwnTerms, numbers: Tensor | None = None
    ) -> None:
        super().__init__(terms.parts)
        self._terms = terms
        self.weights = weights  # `[batch, head, query, key]`
        self.values = values  # `[batch, head, key, width]`
        shape = (*weights.shape[:3], values.places.shape[-1])
        every = torch.arange(prod(shape), device=weights.device).view(shape)
        self._by_query = every.transpose(1, 2).flatten(2)
        self.numbers = every if numbers is None else numbers

    def moved(self, terms: Terms, numbers: Tensor) -> "MixedTerms":
        """The same terms with their numbers in other places."""
        return MixedTerms(terms, self.weights, self.values, numbers)

    @property
    def in_rows(self) -> bool:
        """Whether a row has the numbers of all heads of one query, head by head."""
        rows = self._by_query.flatten(0, 1)
        same = self.numbers.shape[-1] == rows.shape[-1]
        return same and torch.equal(self.numbers.reshape(rows.shape), rows)

    def part(self, which: slice) -> Tensor:
        """The terms of a part."""
        return self._terms.part(which)

    def whole(self) -> Tensor:
        """All terms."""
        return self._terms.whole()


def own_terms(parts: TermParts, stream: Tensor) -> OwnTerms:
    """The terms of hidden states `[batch, token, feature]` in which each token is its own."""
    places = torch.arange(stream.shape[1], device=stream.device)[:, None].expand(stream.shape)

    def make() -> Tensor:
        wide = stream.detach().to(wide_type(stream))
        return torch.stack([wide, torch.zeros_like(wide)])

    return OwnTerms(parts, places, make)


def wide_type(tensor: Tensor) -> torch.dtype:
    """The precision of terms: single, or that of the tensor if it is double."""
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def token_axis(places: Tensor, tokens: int) -> int | None:
    """The axis along which places go through all tokens in turn; None if there is none."""
    for axis, length in enumerate(places.shape):
        in_turn = torch.arange(tokens, device=places.device)
        if length == tokens and bool((places.movedim(axis, -1) == in_turn).all()):
            return axis
    return None


def put_together(parts: TermParts, make: Callable[[slice], Tensor]) -> Tensor:
    """All terms in one tensor, from their parts."""
    whole = torch.empty(0)
    for part in parts:
        made = make(part)
        if len(made) == parts.count:
            return made
        if not part.start:
            whole = made.new_empty(parts.count, *made.shape[1:])
        whole[part] = made
    return whole
