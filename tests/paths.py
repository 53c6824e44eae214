"""Rollout by its definition: the sum over all paths through the layers."""

from itertools import pairwise, product

import torch


def step(layer, above, below, residual):
    """The weight of going from one position to another through a layer and its bypass."""
    through = (1 - residual) * layer[above].sum()
    return (residual * (above == below) + (1 - residual) * layer[above, below]) / (
        residual + through
    )


def sum_over_paths(layers, residual):
    """The sum over all paths from a key up to a query; a path counts the product of its steps."""
    size = layers.shape[-1]
    result = torch.zeros(size, size, dtype=layers.dtype)
    for path in product(range(size), repeat=len(layers) + 1):  # path[0] is the input token
        weight = 1.0
        for layer, (below, above) in zip(layers, pairwise(path), strict=True):
            weight *= step(layer, above, below, residual)
        result[path[-1], path[0]] += weight
    return result


def walk_down(position, level, source, decoder, cross, residual, found, weight):
    """Every path down from a decoder position: in each layer, stay or cross into `source`."""
    if weight == 0:
        return
    if level < 0:
        found["prefix", position] = found.get(("prefix", position), 0) + weight
        return
    row = cross[level][position]
    whole = residual + (1 - residual) * row.sum()
    for token in range(len(row)):  # by cross-attention into the top of the encoder, then down
        taken = weight * (1 - residual) * row[token] / whole
        for below in range(len(row)):
            share = taken * source[token, below]
            found["source", below] = found.get(("source", below), 0) + share
    kept = weight * residual / whole
    for below in range(decoder.shape[-1]):  # past the cross-attention, by self-attention
        taken = kept * step(decoder[level], position, below, residual)
        walk_down(below, level - 1, source, decoder, cross, residual, found, taken)
