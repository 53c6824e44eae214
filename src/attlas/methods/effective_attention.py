"""Effective attention: the weights without the part that the values take to nothing.

Brunner et al., "On Identifiability in Transformers", ICLR 2020; Sun and Marasović, "Effective
Attention Sheds Light On Interpretability", Findings of ACL 2021.
"""

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.mathematics.null_space import centred, effective_part, ranks, rounding
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
from attlas.results import Site
from attlas.shapes import HeadRanks


@method(
    family="W",
    signed=True,
    of=None,
    paper="Brunner et al. 2020, arXiv:1908.04211; Sun and Marasović 2021, arXiv:2105.08855",
    maps="sites",
    reading="The weight on each token that the mixed values, and so the model, depend on.",
    needs=("attention",),
    many_targets=True,
    fills=True,
)
def effective_attention(
    question: Question,
    *,
    layer: int | None = -1,
    fusion: str = "mean",
    keep_sums: bool = False,
) -> Scored:
    """Score each token by the part of the attention to it that the mixed values depend on.

    `layer` counts from the top if negative; None takes the mean over all layers. `fusion` joins the
    heads: mean, max or min. `keep_sums` takes away only what also sums to zero, so that rows sum to
    one. Where no more tokens are seen than the values have independent directions, it is the
    attention itself. A negative score is no vote against the target: it is what is left where other
    weights would have given the same values.
    """
    chosen = reading_sites(question.inputs, question.subject.sites, layer)
    readout = find_readout(question)
    mean, notes = LayerMean(), []

    def add(call: Call) -> None:
        read = readout_of(question.inputs, call.site.kind, readout)
        found = effective_rows(call, read.any(dim=0).nonzero()[:, 0], keep_sums)
        mean.add(call.site.kind, fuse_heads(found, fusion))
        notes.append(describe_ranks(call, int(read.sum(dim=0).argmax())))

    def whole(call: Call) -> tuple[Site, Tensor]:
        return call.site, effective_rows(call, None, keep_sums)

    fold_attention(question, add, chosen)
    maps = fold_attention(question, whole).held if question.maps else ()
    scores = spread_over_tokens(question.inputs, mean.rows(question.inputs, readout))
    by_row = [tuple(note[row] for note in notes) for row in range(len(notes[0]))]
    by_row = by_row * len(question) if question.is_shared else by_row
    return Scored(scores, maps, row_notes=by_row)


def effective_rows(call: Call, rows: Tensor | None, keep_sums: bool) -> Tensor:
    """The effective attention of a call, of some of its rows alone or of all; the others zero."""
    values = head_values(call)
    visible = call.visible
    if rows is None:
        return _narrowed(effective_part(call.weights, values, visible, keep_sums=keep_sums), call)
    found = call.weights.new_zeros(call.weights.shape, dtype=torch.float64)
    weights, seen = call.weights[:, :, rows], visible[:, :, rows]
    found[:, :, rows] = effective_part(weights, values, seen, keep_sums=keep_sums)
    return _narrowed(found, call)


def _narrowed(found: Tensor, call: Call) -> Tensor:
    """In the model's precision, or in float32 where that is less."""
    return found if call.weights.dtype == torch.float64 else found.float()


def head_values(call: Call) -> Tensor:
    """The values that each head mixes, `[batch, head, key, width]`; grouped heads share theirs."""
    if call.values is None:
        raise UnsupportedModelError(
            f"the values that {call.path} mixes are not seen: this family writes its attention out "
            "by itself, so nothing can be said of what they take to nothing"
        )
    return call.values.repeat_interleave(call.weights.shape[1] // call.values.shape[1], dim=1)


def describe_ranks(call: Call, row: int) -> list[str]:
    """Of each input: how far its values leave the weights of this row open, over the heads."""
    values = head_values(call)
    seen = call.visible[:, :, row : row + 1].expand(*values.shape[:2], 1, values.shape[2])
    counts = seen.sum(dim=-1)[..., 0]
    own, double = rounding(values), rounding(values, torch.float64)
    around = centred(values.double(), seen)
    plain, finer = (ranks(values, seen, each) for each in (own, double))
    summed, finer_summed = (ranks(around, seen, each) + 1 for each in (own, double))
    found = []
    for index, count in enumerate(counts):
        rank, free = _span(plain[index]), _span(count - plain[index])
        constrained = _span((count - summed[index]).clamp_min(0))
        note = (
            f"{call.site.name}: the values of {int(count[0])} keys have rank {rank}, nullity "
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
