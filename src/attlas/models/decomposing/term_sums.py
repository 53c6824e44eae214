"""Sums with terms: the shares of tokens in what is added, and whether terms sum to the whole."""

from collections.abc import Callable

import torch
from torch import Tensor

from attlas.models.decomposing.terms import wide_type


def with_bias(terms: Tensor, bias: Tensor, share: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Add a bias to all terms of a tensor, shared among the tokens; they are changed in place.

    `share` returns the share of each token, `[token, …, 1]`, from the tokens' terms and the bias.
    What it does not give away goes to the last term.
    """
    terms, added = spread(terms, bias)
    return terms.addcmul_(all_shares(terms, added, share), added)


def with_shares(terms: Tensor, bias: Tensor, shares: Tensor) -> Tensor:
    """Add to each term its share, `[term, …, 1]`, of a bias; the terms are changed in place."""
    terms, added = spread(terms, bias)
    return terms.addcmul_(shares, added)


def spread(terms: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Terms, and what is added to them, in the shape of their sum."""
    shape = torch.broadcast_shapes(terms.shape[1:], bias.shape)
    if shape != terms.shape[1:]:
        terms = torch.vmap(lambda term: term.expand(shape))(terms).clone()
    return terms, bias.to(terms).expand(shape)


def all_shares(terms: Tensor, bias: Tensor, share: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The shares of all terms in a bias, `[term, …, 1]`; that of no token gets what is left."""
    shares = share(terms[:-1], bias.to(terms).expand(terms.shape[1:]))
    return torch.cat([shares, 1 - shares.sum(dim=0, keepdim=True)])


class TermSums:
    """Adds up terms, part by part, and compares their sum with the whole."""

    def __init__(self, whole: Tensor) -> None:
        self._whole = whole.detach().to(wide_type(whole))
        self._sum = torch.zeros_like(self._whole)
        self._largest = self._whole.abs().max()

    def add(self, terms: Tensor) -> None:
        """Add the terms of a part."""
        self._sum += terms.sum(dim=0)
        least, most = terms.aminmax()
        self._largest = torch.stack([self._largest, -least, most]).max()

    @property
    def distance(self) -> float:
        """The distance of the sum of the terms from the whole."""
        return float((self._sum - self._whole).abs().max())

    @property
    def size(self) -> float:
        """The largest number in the whole and in the terms."""
        return max(float(self._largest), 1e-30)
