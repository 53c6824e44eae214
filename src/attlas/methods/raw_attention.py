"""Raw attention: the attention weights as they are."""

from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import (
    LayerMean,
    fuse_heads,
    reading_sites,
    spread_over_tokens,
)
from attlas.methods.support.top_down import mean_row
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.rows.handing import hand_over, is_for_rows
from attlas.models.tap.call import Call


@method(
    family="W",
    signed=False,
    of=None,
    paper="Bahdanau et al. 2015, arXiv:1409.0473",
    maps="sites",
    reading="How much the position that the model predicts from looks at each token.",
    needs=("attention",),
    many_targets=True,
    fills=True,
    learns=True,
    by_rows=True,
    passes=1,
)
def raw_attention(question: Question, *, layer: int | None = -1, fusion: str = "mean") -> Scored:
    """Score each token by the attention that the predicting position pays to it.

    `layer` counts from the top if negative; None takes the mean over all layers. `fusion` combines
    the heads: mean, max or min. In an encoder–decoder the source is scored by cross-attention and
    the prefix by the decoder's self-attention, and each sums to one. Of the target, only the
    positions it is read from matter. A large score does not mean that the token mattered.
    """
    chosen = reading_sites(question.inputs, question.subject.sites, layer)
    if is_for_rows(question, chosen):
        found = hand_over(question, chosen)
        row = mean_row(found.calls, found.readout, lambda part: fuse_heads(part.weights, fusion))
        return Scored(spread_over_tokens(question.inputs, [(chosen[0].kind, row)]))
    mean, maps = LayerMean(), []

    def add(call: Call) -> None:
        if call.site in chosen:
            mean.add(call.site.kind, fuse_heads(call.weights, fusion))
        if question.maps:
            maps.append((call.site, call.weights))

    readout = fold_attention(question, add, None if question.maps else chosen).readout
    scores = spread_over_tokens(question.inputs, mean.rows(question.inputs, readout))
    return Scored(scores, maps, shows="attention")
