"""Generic relevance: gradient-weighted attention followed up through the layers.

Chefer, Gur and Wolf, "Generic Attention-model Explainability for Interpreting Bi-Modal and
Encoder-Decoder Transformers", ICCV 2021.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods.attention_rollout import fold_copy
from attlas.methods.support.method import Scored, method
from attlas.methods.support.relevance_spread import (
    Read,
    Relevance,
    begin,
    read_others,
    read_own,
    weigh_heads,
)
from attlas.methods.support.token_rows import mixing_sites, read_row
from attlas.models.asking.question import Question
from attlas.models.asking.reading import gradients_and_readout
from attlas.models.encoding.inputs import Inputs
from attlas.results import Site
from attlas.shapes import HeadMean, TokenScores

COPY = "copy"  # the stream of a decoder that is handed the source once more


@method(
    family="V",
    signed=False,
    of="logit",
    paper="arXiv:2103.15679",
    maps="all",
    reading="How much of what speaks for the target each token brings to where it is read.",
    needs=("attention", "gradients"),
    many_targets=True,
    fills=True,
)
def generic_relevance(question: Question, *, start_layer: int = 0) -> Scored:
    """Score each token by the gradient-weighted attention that leads from it to the prediction.

    Layers below `start_layer`, which counts from the top if negative, are left out. That each
    position matters to itself to begin with is part of the maps and not of the scores.
    """
    whole = question.subject.sites
    through = whole if question.inputs.picture else mixing_sites(whole)
    sites = layers_from(through, start_layer)
    found = [_relate(part, sites) for part in question.batches_holding(sites)]
    mixing = torch.cat([each for _, each in found])
    maps = [(Site("all", 0, 1), mixing[:, None])] if question.maps else []
    return Scored(torch.cat([scores for scores, _ in found]), maps)


def layers_from(sites: Sequence[Site], start: int) -> list[Site]:
    """The sites from a layer on; from the top of each kind if it is negative."""
    depth = {site.kind: site.layer + 1 for site in sites}
    most = max(depth.values())
    if not -most <= start < most:
        raise UsageError(f"unknown layer {start}: this model has layers 0 to {most - 1}")
    return [site for site in sites if site.layer >= start + (depth[site.kind] if start < 0 else 0)]


def _relate(question: Question, sites: Collection[Site]) -> tuple[TokenScores, HeadMean]:
    """The scores of a batch, and how much each token matters to each position that is read."""
    found = gradients_and_readout(question, sites)
    layout = Layout.of(question)
    reads = [
        layout.check((*layout.names(call.site.kind), weigh_heads(call.weights, gradient)))
        for call, gradient in found.held
    ]
    start = begin(layout.lengths, reads[0][2])
    relevance = start
    for together in steps(reads):
        relevance = read_on(relevance, together)
    mixing, before = (layout.matrix(each, len(question)) for each in (relevance, start))
    return read_row(mixing - before, found.readout), mixing


def steps(reads: Sequence[Read]) -> list[list[Read]]:
    """What is read at once: two streams that read each other, one right after the other."""
    found: list[list[Read]] = []
    for reader, other, layer in reads:
        before = found[-1][-1][:2] if found else None
        if reader != other and before == (other, reader):
            found[-1].append((reader, other, layer))
        else:
            found.append([(reader, other, layer)])
    return found


def read_on(relevance: Relevance, reads: Sequence[Read]) -> Relevance:
    """Relevance after one more attention, or after two that read each other."""
    reader, other, layer = reads[0]
    return read_own(relevance, reader, layer) if reader == other else read_others(relevance, reads)


@dataclass(frozen=True)
class Layout:
    """The streams of an input in the order of their tokens, and those that are read out."""

    inputs: Inputs
    lengths: Mapping[str, int]
    readers: Sequence[str]

    @classmethod
    def of(cls, question: Question) -> "Layout":
        """The layout of a question; a decoder without a prefix reads a copy of the source."""
        inputs = question.inputs
        lengths = {stream.argument: len(stream.positions) for stream in inputs.streams()}
        if inputs.prefix is not None:
            return cls(inputs, lengths, [inputs.prefix.argument])
        if len(lengths) == 1 and any(site.kind == "cross" for site in question.subject.sites):
            lengths[COPY] = lengths[inputs.source.argument]
            return cls(inputs, lengths, [COPY])
        return cls(inputs, lengths, list(lengths))

    def names(self, kind: str) -> tuple[str, str]:
        """The stream that reads at a site of this kind, and the one that is read."""
        queries, keys = self.inputs.queries_and_keys(kind)
        if COPY not in self.lengths or kind == "encoder":
            return queries.argument, keys.argument
        return COPY, queries.argument if kind == "cross" else COPY

    def check(self, read: Read) -> Read:
        """The same, if its layer is over the tokens of its streams."""
        reader, other, layer = read
        expected = (self.lengths[reader], self.lengths[other])
        if layer.shape[1:] != expected:
            raise UnsupportedModelError(
                f"an attention is over {layer.shape[1]} × {layer.shape[2]} places, not the "
                f"{expected[0]} × {expected[1]} tokens of the input"
            )
        return read

    def matrix(self, relevance: Relevance, batch: int) -> HeadMean:
        """How much each token matters to each position that is read out."""
        rows = [self._row(relevance, reader).expand(batch, -1, -1) for reader in self.readers]
        matrix = torch.cat(rows, dim=1)
        return fold_copy(matrix) if COPY in self.lengths else matrix

    def _row(self, relevance: Relevance, reader: str) -> Tensor:
        own = relevance[reader, reader]
        nothing = own.new_zeros(1, own.shape[1], 1)
        blocks = [
            relevance.get((reader, other), nothing.expand(-1, -1, length))
            for other, length in self.lengths.items()
        ]
        batch = max(len(block) for block in blocks)
        return torch.cat([block.expand(batch, -1, -1) for block in blocks], dim=-1)
