"""ALTI and GlobEnc, against the vectors of all pairs of tokens of a layer at once.

The peer is written out for BERT, as the methods' published code does it: the values of each key
through each head's slice of the projection, weighted for each query, with the residual connection
and the norms; then what is kept of each vector. It gets everything else from transformers.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from comparing import Row, Setup, largest_difference
from shapes import bert, ids_of, texts_of
from torch import Tensor

import attlas

PAIRS = "the vectors of all pairs of a layer at once"


def compare(setup: Setup) -> Iterator[Row]:
    tokens = setup.size(256, 48)
    subject = bert(setup.device, layers=setup.size(12, 2))
    (text,) = texts_of(subject, [tokens])
    model, ids = subject.model, ids_of(subject, text)
    for method, peer in (("alti", _alti), ("globenc", _globenc)):
        work = partial(attlas.explain, subject, text, method, maps=False)
        other = partial(peer, model, ids)
        ours, theirs = setup.in_turns(work, other, rounds=1)
        (_, used), (_, held) = setup.peak(work), setup.peak(other)
        off = largest_difference([work().scores], [other()])
        yield Row(
            f"`{method}`, {tokens} tokens",
            PAIRS,
            ours,
            theirs,
            difference=off,
            megabytes=used,
            peer_megabytes=held,
        )


def _alti(model: Any, ids: Tensor) -> Tensor:
    mixing = None
    for layer, given, weights in _layers(model, ids):
        terms, whole = _attended(layer, given, weights)
        norm = layer.attention.output.LayerNorm
        terms, whole = _normed(norm, terms, whole), norm(whole)
        distance = (whole[:, None] - terms).abs().sum(dim=-1)
        closer = (whole.abs().sum(dim=-1)[:, None] - distance).clamp_min(0)
        shares = closer / closer.sum(dim=-1, keepdim=True)
        mixing = shares if mixing is None else shares @ mixing
    assert mixing is not None
    return mixing[0]


def _globenc(model: Any, ids: Tensor) -> Tensor:
    mixing = None
    for layer, given, weights in _layers(model, ids):
        terms, whole = _attended(layer, given, weights)
        terms = _normed(layer.attention.output.LayerNorm, terms, whole)
        between = layer.attention.output.LayerNorm(whole)
        before = layer.output.dense(layer.intermediate(between)) + between
        lengths = _normed(layer.output.LayerNorm, terms, before).norm(dim=-1).double()
        mixing = lengths if mixing is None else lengths @ mixing
    assert mixing is not None
    return mixing[0] / mixing[0].max()


@torch.no_grad()
def _layers(model: Any, ids: Tensor) -> list[tuple[Any, Tensor, Tensor]]:
    """Each layer with its input `[token, feature]` and its weights `[head, query, key]`."""
    own = model.config._attn_implementation
    model.set_attn_implementation("eager")
    output = model(input_ids=ids, output_attentions=True, output_hidden_states=True)
    model.set_attn_implementation(own)
    pairs = zip(model.bert.encoder.layer, output.hidden_states, output.attentions, strict=False)
    return [(layer, given[0], weights[0]) for layer, given, weights in pairs]


@torch.no_grad()
def _attended(layer: Any, given: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The term of each key in each query's attended state and residual, and their sum."""
    values = layer.attention.self.value(given).unflatten(-1, (len(weights), -1))
    matrix = layer.attention.output.dense.weight.unflatten(-1, (len(weights), -1))
    terms = torch.einsum("hqk,khw,fhw->qkf", weights, values, matrix)
    own = torch.arange(len(given), device=given.device)
    terms[own, own] += given
    return terms, terms.sum(dim=1) + layer.attention.output.dense.bias


@torch.no_grad()
def _normed(norm: Any, terms: Tensor, whole: Tensor) -> Tensor:
    """Terms through a norm, with the spread of their sum and without its bias."""
    spread = (whole.var(dim=-1, correction=0) + norm.eps).sqrt()[:, None, None]
    return (terms - terms.mean(dim=-1, keepdim=True)) / spread * norm.weight
