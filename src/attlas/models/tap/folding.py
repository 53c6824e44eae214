"""Folding: reduce each attention while the model computes it, so that only one is in memory."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import nn

from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap.call import Call
from attlas.models.tap.opening import tap
from attlas.results import Site

Held = TypeVar("Held")
_NOTHING = torch.empty(0)


@contextmanager
def fold_calls(
    model: nn.Module, keep: Callable[[Call], Held], sites: Collection[Site] | None = None
) -> Iterator[list[Held]]:
    """Open a model and reduce each attention as it is computed; the list collects the results.

    `keep` gets each call and returns what to hold of it. `sites` are the sites to read; the
    default is all.
    """
    held: list[Held] = []

    def take(call: Call) -> Call:
        with torch.no_grad():
            held.append(keep(call))
        return Call(call.site, call.path, _NOTHING, None, None)

    with evaluation_mode(model), tap(model, wants=among(sites), keep=take):
        yield held


def among(sites: Collection[Site] | None) -> Callable[[Site], bool] | None:
    """A function for the tap that tells whether a site is one of these; None means every site."""
    if sites is None:
        return None
    names = {site.name for site in sites}
    return lambda site: site.name in names
