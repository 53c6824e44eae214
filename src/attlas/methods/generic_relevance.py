"""Generic relevance: gradient-weighted attention, followed through all layers.

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
from attlas.methods.support.token_rows import read_row, sites_in_turn
from attlas.methods.support.top_down import relevant_row
from attlas.models.asking.question import Question
from attlas.models.asking.reading import gradients_and_readout
from attlas.models.encoding.inputs import Inputs
from attlas.models.rows.handing import Handover, is_for_rows, score_handed
from attlas.results import Site
from attlas.shapes import HeadMean, TokenScores

COPY = "copy"  # the stream of a decoder that reads the source once more


@method(
    family="V",
    signed=False,
    of="logit",
    paper="arXiv:2103.15679",
    maps="all",
    reading="How much each token adds, by attention that supports the target, to the prediction.",
    needs=("attention", "gradients"),
    many_targets=True,
    fills=True,
    learns=True,
    by_rows=True,
    passes=1,
)
def generic_relevance(question: Question, *, start_layer: int = 0) -> Scored:
    """Score each token by the gradient-weighted attention that leads from it to the prediction.

    Layers below `start_layer`, which counts from the top if negative, are left out. Before the
    first layer each position is relevant to itself; this is in the maps, but not in the scores.
    """
    picture = question.inputs.picture
    through = question.subject.sites if picture else sites_in_turn(question.subject)
    sites = layers_from(through, start_layer)
    if is_for_rows(question, sites):
        return Scored(score_handed(question, sites, _gained))
    related = [_relate(batch, sites) for batch in question.batches_holding(sites)]
    mixing = torch.cat([each for _, each in related])
    maps = [(Site("all", 0, 1), mixing[:, None])] if question.maps else []
    return Scored(torch.cat([scores for scores, _ in related]), maps, shows="relevance")


def _gained(found: Handover) -> TokenScores:
    """What the positions that the prediction is read from gain of each token, in all layers."""
    return relevant_row(
        found.calls, found.readout, lambda part: weigh_heads(part.weights, part.gradient)
    )


def layers_from(sites: Sequence[Site], start: int) -> list[Site]:
    """The sites from this layer on; a negative layer counts from the top of each kind."""
    depth = {site.kind: site.layer + 1 for site in sites}
    most = max(depth.values())
    if not -most <= start < most:
        raise UsageError(f"unknown layer {start}: this model has layers 0 to {most - 1}")
    return [site for site in sites if site.layer >= start + (depth[site.kind] if start < 0 else 0)]


def _relate(question: Question, sites: Collection[Site]) -> tuple[TokenScores, HeadMean]:
    """The scores of a batch, and the relevance of each token to each position that is read."""
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
    """Group the reads into steps: two streams that read each other in turn form one step."""
    grouped: list[list[Read]] = []
    for reader, other, layer in reads:
        before = grouped[-1][-1][:2] if grouped else None
        if reader != other and before == (other, reader):
            grouped[-1].append((reader, other, layer))
        else:
            grouped.append([(reader, other, layer)])
    return grouped


def read_on(relevance: Relevance, reads: Sequence[Read]) -> Relevance:
    """Relevance after one more attention, or after two streams have read each other."""
    reader, other, layer = reads[0]
    return read_own(relevance, reader, layer) if reader == other else read_others(relevance, reads)


@dataclass(frozen=True)
class Layout:
    """The streams of an input in token order, and those that the prediction is read from."""

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
        """The stream that reads at a site of this kind, and the stream that is read."""
        queries, keys = self.inputs.queries_and_keys(kind)
        if COPY not in self.lengths or kind == "encoder":
            return queries.argument, keys.argument
        return COPY, queries.argument if kind == "cross" else COPY

    def check(self, read: Read) -> Read:
        """The same read; an error unless its layer is over the tokens of its streams."""
        reader, other, layer = read
        expected = (self.lengths[reader], self.lengths[other])
        if layer.shape[1:] != expected:
            raise UnsupportedModelError(
                f"an attention is over {layer.shape[1]} × {layer.shape[2]} positions, not the "
                f"{expected[0]} × {expected[1]} tokens of the input"
            )
        return read

    def matrix(self, relevance: Relevance, batch: int) -> HeadMean:
        """The relevance of each token to each position that the prediction is read from."""
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
