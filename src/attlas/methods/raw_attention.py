"""Raw attention: read the weights as they are."""

from attlas.methods.method import Scored, method
from attlas.models.question import Question
from attlas.quantities.token_rows import (
    choose_layers,
    fuse_heads,
    read_row,
    reading_kinds,
    spread_over_tokens,
)


@method(
    family="W",
    signed=False,
    of=None,
    paper="Bahdanau et al. 2015, arXiv:1409.0473",
    reading="How much the position that the model predicts from looks at each token.",
)
def raw_attention(question: Question, *, layer: int | None = -1, fusion: str = "mean") -> Scored:
    """Score each token by the attention that the predicting position pays to it.

    `layer` counts from the top if negative; None takes the mean over all layers. `fusion` joins the
    heads: mean, max or min. In an encoder–decoder the source is scored by cross-attention and the
    prefix by the decoder's own, each summing to one. Of the target, only the positions it is read
    from matter, and a large score need not mean that the token mattered.
    """
    calls = question.attention()
    readout = question.readout()
    rows = []
    for kind in reading_kinds(question.inputs, [call.site for call in calls]):
        maps = [call.weights for call in calls if call.site.kind == kind]
        chosen = [
            read_row(fuse_heads(each, fusion), readout) for each in choose_layers(maps, layer)
        ]
        rows.append((kind, sum(chosen[1:], chosen[0]) / len(chosen)))
    return Scored(
        spread_over_tokens(question.inputs, rows), [(call.site, call.weights) for call in calls]
    )
