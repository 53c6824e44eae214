"""Effective attention: the weights without their component in the null space of the values.

Brunner et al., "On Identifiability in Transformers", ICLR 2020; Sun and Marasović, "Effective
Attention Sheds Light On Interpretability", Findings of ACL 2021.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.mathematics.effective_weights import effective_weights
from attlas.mathematics.null_space import centred, ranks, rounding
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import (
    LayerMean,
    fuse_heads,
    reading_sites,
    readout_of,
    spread_over_tokens,
)
from attlas.models.asking.question import Question
from attlas.models.asking.reading import find_readout, fold_attention
from attlas.models.tap.call import Call
from attlas.shapes import HeadRanks, QueryWeights
from attlas.views.units import layer_names

WIDTH = 64  # of a head: the values of more tokens have no more directions
PROJECTED = 0.02  # passes for each row of a map that sees keys of its own


def weigh(question: Question, options: Mapping[str, Any]) -> float | int:
    """A pass or two; where each row of a map sees keys of its own, their projections too."""
    tokens = len(question.inputs.tokens[0])
    is_apart = question.maps and question.subject.predicts_next
    ahead = options["layer"] is None and not question.maps
    return 1 + ahead + (PROJECTED * tokens * min(1, tokens / WIDTH) if is_apart else 0)


@method(
    family="W",
    signed=True,
    of=None,
    paper="Brunner et al. 2020, arXiv:1908.04211; Sun and Marasović 2021, arXiv:2105.08855",
    maps="sites",
    reading="The attention to each token that the output of the attention depends on.",
    needs=("attention",),
    many_targets=True,
    fills=True,
    learns=True,
    passes=1,
    weighs=weigh,
)
def effective_attention(
    question: Question,
    *,
    layer: int | None = -1,
    fusion: str = "mean",
    keep_sums: bool = False,
) -> Scored:
    """Score each token by the attention to it without the component that changes no output.

    `layer` counts from the top if negative; None takes the mean over all layers. `fusion` combines
    the heads: mean, max or min. `keep_sums` removes only what also sums to zero, so that rows still
    sum to one. If the values of the visible tokens are linearly independent, nothing is removed. A
    negative score does not speak against the target: it only says that other weights would have
    given the same output.
    """
    chosen = reading_sites(question.inputs, question.subject.sites, layer)
    # One layer waits until the pass tells the readout; all of them could take too much memory.
    known = find_readout(question) if layer is None and not question.maps else None
    mean, notes, maps, waiting = LayerMean(), [], [], []
    named = layer_names(site.name for site in question.subject.sites)

    def meet(call: Call) -> None:
        if question.maps:
            call = replace(call, weights=effective_rows(call, None, keep_sums))
            maps.append((call.site, call.weights))
        if known is not None:
            add(call, known)
        elif call.site in chosen:
            waiting.append(call)

    def add(call: Call, readout: QueryWeights) -> None:
        read = readout_of(question.inputs, call.site.kind, readout)
        rows = read.any(dim=0).nonzero()[:, 0]
        found = call.weights if question.maps else effective_rows(call, rows, keep_sums)
        mean.add(call.site.kind, fuse_heads(found, fusion))
        notes.append(describe_ranks(call, named[call.site.name], read.argmax(dim=1).tolist()))

    readout = fold_attention(question, meet, None if question.maps else chosen).readout
    for call in waiting:
        add(call, readout)
    scores = spread_over_tokens(question.inputs, mean.rows(question.inputs, readout))
    by_row = [tuple(note[row] for note in notes) for row in range(len(notes[0]))]
    return Scored(scores, maps, row_notes=by_row, shows="effective attention")


def effective_rows(call: Call, rows: Tensor | None, keep_sums: bool) -> Tensor:
    """The effective attention of a call, in these rows or in all; other rows are zero."""
    values = head_values(call)
    visible = call.visible
    if rows is None:
        return _narrowed(
            effective_weights(call.weights, values, visible, keep_sums=keep_sums), call
        )
    found = call.weights.new_zeros(call.weights.shape, dtype=torch.float64)
    weights, seen = call.weights[:, :, rows], visible[:, :, rows]
    found[:, :, rows] = effective_weights(weights, values, seen, keep_sums=keep_sums)
    return _narrowed(found, call)


def _narrowed(found: Tensor, call: Call) -> Tensor:
    """In float64 if the model computes in it, otherwise in float32."""
    return found if call.weights.dtype == torch.float64 else found.float()


def head_values(call: Call) -> Tensor:
    """The values that each head mixes, `[batch, head, key, width]`; grouped heads share theirs."""
    if call.values is None:
        raise UnsupportedModelError(
            f"the values of {call.path} cannot be read, because this family computes attention in "
            "its own code; effective attention needs them"
        )
    return call.values.repeat_interleave(call.weights.shape[1] // call.values.shape[1], dim=1)


def describe_ranks(call: Call, layer: str, rows: Sequence[int]) -> list[str]:
    """For each row of an input, a note on the rank and nullity of the values that it sees.

    `layer` is what readers call the site. There is one row for each input of a batch, or several
    of a single one.
    """
    values = head_values(call)
    visible = call.visible.expand(len(values), values.shape[1], -1, values.shape[2])
    if len(values) != len(rows):
        values, visible = (each.expand(len(rows), *each.shape[1:]) for each in (values, visible))
    places = torch.tensor(rows, device=visible.device)[:, None, None, None]
    seen = visible.take_along_dim(places, dim=2)
    counts = seen.sum(dim=-1)[..., 0]
    own, double = rounding(values), rounding(values, torch.float64)
    around = centred(values.double(), seen)
    plain, finer = (ranks(values, seen, each).cpu() for each in (own, double))
    summed, finer_summed = (ranks(around, seen, each).cpu() + 1 for each in (own, double))
    found = []
    for index, count in enumerate(counts.cpu()):
        rank, free = _span(plain[index]), _span(count - plain[index])
        constrained = _span((count - summed[index]).clamp_min(0))
        note = (
            f"{layer}: the values of {int(count[0])} keys have rank {rank}, nullity "
            f"{free} ({constrained} with sums kept)"
        )
        if not (plain[index].equal(finer[index]) and summed[index].equal(finer_summed[index])):
            other = _span(count - finer[index])
            also = _span((count - finer_summed[index]).clamp_min(0))
            note += f"; by the precision of float64, nullity {other} ({also})"
        found.append(note)
    return found


def _span(numbers: HeadRanks) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return str(low) if low == high else f"{low} to {high}"
