"""Removed heads: a forward pass of the smaller model, against one of the whole.

Every layer loses half or three quarters of its heads for good. The output is compared with that of
the whole model whose output projections are zero for these heads, which saves nothing.
"""

from collections.abc import Iterator
from copy import deepcopy
from functools import partial

import torch
from comparing import Row, Setup, largest_difference
from shapes import bert, ids_of, texts_of

import attlas

WIDTH = 64
SHARES = {"half": 6, "three quarters": 9}


def compare(setup: Setup) -> Iterator[Row]:
    whole = bert(setup.device, layers=setup.size(12, 2))
    for tokens in setup.size((128, 512), (32,)):
        ids = ids_of(whole, *texts_of(whole, [tokens]))
        for share, count in SHARES.items():
            heads = {site.name: list(range(count)) for site in whole.sites}
            smaller = attlas.prune(whole, heads, permanently=True)
            ours, peer = setup.in_turns(
                partial(_run, smaller.model, ids), partial(_run, whole.model, ids)
            )
            off = largest_difference(
                _run(smaller.model, ids), _run(_zeroed(whole.model, count), ids)
            )
            what = f"a forward pass, {share} of the heads pruned, {tokens} tokens"
            yield Row(what, "the whole model", ours, peer, None, off, "of a logit")


@torch.no_grad()
def _run(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    return model(input_ids=ids).logits


def _zeroed(whole: torch.nn.Module, count: int) -> torch.nn.Module:
    model = deepcopy(whole)
    for layer in model.bert.encoder.layer:
        layer.attention.output.dense.weight.data[:, : count * WIDTH] = 0
    return model
