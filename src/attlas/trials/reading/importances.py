"""How much each token counts: by its attention, by gradients, and by what is missed without it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.methods.support.vectors import inner_products
from attlas.models.asking.question import Question
from attlas.models.asking.reading import find_readout, fold_attention
from attlas.models.encoding.inputs import Stream
from attlas.models.states.embeddings import embedding_gradients, over_tokens
from attlas.models.tap import edits
from attlas.models.tap.call import Call
from attlas.removing.removal import removable, remove_each
from attlas.results import Site
from attlas.shapes import Hidden, TokenScores
from attlas.trials.support.outputs import distributions, total_variation
from attlas.trials.support.scope import Scope


def attention_importance(question: Question, scope: Scope) -> tuple[TokenScores, Hidden]:
    """The weight of each token: its mean over the sites, heads and rows of a scope.

    Also which tokens the scope is about; the others weigh nothing.
    """
    opened = {each.site.name: each for each in scope.opened(question)}

    def keep(call: Call) -> tuple[Stream, Tensor, Tensor]:
        own = opened[call.site.name]
        entries = own.entries(call.visible)
        total = (call.weights.double() * entries).sum(dim=(1, 2))
        rows = own.rows.sum(dim=1, keepdim=True) * call.site.heads
        stream = question.inputs.queries_and_keys(call.site.kind)[1]
        return stream, total / rows.clamp_min(1), entries.any(dim=2).any(dim=1)

    held = fold_attention(question, keep, scope.sites(question.subject)).held
    weights = held[0][1].new_zeros(len(question), len(question.inputs.tokens[0]))
    known = torch.zeros_like(weights, dtype=torch.bool)
    for stream, part, seen in held:
        weights[:, stream.start : stream.stop] += part / len(held)
        known[:, stream.start : stream.stop] |= seen
    return weights, known


def gradient_importance(question: Question) -> TokenScores:
    """How far each token moves the target's probability to first order, up or down.

    The gradient on the token's vector times that vector: the derivative on its one-hot entry.
    """
    found, _ = embedding_gradients(question, "probability")
    parts = [(each.start, inner_products(each.values, each.gradient).abs()) for each in found]
    return over_tokens(question.inputs, parts)


def detached_gradient_importance(question: Question) -> TokenScores:
    """As `gradient_importance`, the attention weights of all layers being taken as constants."""
    with question.subject.tap(edits.apply(torch.Tensor.detach), sites=()):
        return gradient_importance(question)


def left_out_importance(question: Question, how: str) -> TokenScores:
    """The total variation distance of the answer to that without each token.

    Zero where a token is never removed.
    """
    whole = distributions(question)
    scores = whole.new_zeros(len(question), len(question.inputs.tokens[0]))
    places = [(row, place) for row in range(len(question)) for place in removable(question, row)]
    for chunk, inputs in remove_each(question, places, how):
        rows, positions = torch.tensor(chunk, device=scores.device).unbind(1)
        without = distributions(question.rows(rows.tolist()).about(inputs))
        scores[rows, positions] = total_variation(whole[rows], without)
    return scores


def head_importances(question: Question, sites: Sequence[Site]) -> list[TokenScores]:
    """The attention of every head of these sites at the position that is read."""
    readout = find_readout(question).double()
    length = len(question.inputs.tokens[0])

    def keep(call: Call) -> Tensor:
        rows = torch.einsum("bhqk,bq->hbk", call.weights.double(), readout)
        stream = question.inputs.queries_and_keys(call.site.kind)[1]
        return torch.nn.functional.pad(rows, (stream.start, length - stream.stop))

    return [head for rows in fold_attention(question, keep, sites).held for head in rows]
