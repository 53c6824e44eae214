"""Agreement: does attention rank tokens as gradients and leave-one-out do?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.keeping import kept
from attlas.methods.support.vectors import inner_products
from attlas.models.asking.question import Question
from attlas.models.asking.reading import find_readout, fold_attention
from attlas.models.encoding.inputs import Stream
from attlas.models.states.embeddings import embedding_gradients, over_tokens
from attlas.models.tap import edits
from attlas.models.tap.call import Call
from attlas.removing.removal import removable, remove_each, usual_removal
from attlas.results import Site
from attlas.shapes import Hidden, MethodScores, TokenScores
from attlas.trials.reading.agreement_findings import (
    SCORES,
    by_class,
    by_head,
    figures_of,
    p_values_of,
    plots_of,
    sentence_of,
    significant_shares,
    taus_of_heads,
)
from attlas.trials.support.findings import estimates_as_json
from attlas.trials.support.outputs import distributions, total_variation
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial

LAYERS = Scope("layer")  # the heads that are compared one by one, whatever the scope


@dataclass(frozen=True, eq=False)
class TextScores:
    """The scores of the tokens of one text: by each of SCORES, then by each head."""

    number: int
    label: str  # what the model predicts
    scores: MethodScores


@trial(
    cost="cheap",
    paper="Jain & Wallace 2019, arXiv:1902.10186",
    reading="Does attention rank the tokens as gradients and leave-one-out do?",
    does_not_show=(
        "That attention is unfaithful: gradients and leave-one-out are two other views of the "
        "model, and often agree little with each other."
    ),
    needs=("attention", "embeddings", "removal"),
    fills=True,
)
def agreement(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    removal: str | None = None,
    share: float = 0.2,
) -> TrialOutcome:
    """Correlate attention with gradient importance and with leave-one-out, by Kendall's τ-b.

    Gradient importance takes the attention weights of all layers as constants; the full gradient
    is compared too, and the agreement of gradient and leave-one-out is the yardstick. `removal` is
    how a token is left out; by default it is deleted, or masked if positions count. The overlap is
    that of the top `share` of the tokens. Nothing is random: the `seed` has no effect.
    """
    if not 0 < share <= 1:
        raise UsageError(f"share must be above 0 and at most 1, not {share}")
    found = [text for question in questions for text in _compare(question, scope, removal)]
    texts = sorted(found, key=lambda text: text.number)
    four = [text.scores[: len(SCORES)] for text in texts]
    each = [figures_of(scores, share) for scores in four]
    figures = {name: np.array([one[name] for one in each]) for name in each[0]}
    p_values = np.array([p_values_of(scores) for scores in four])
    classes = by_class(figures, p_values, [text.label for text in texts])
    taus = np.stack([taus_of_heads(text.scores) for text in texts])
    heads = by_head(taus, LAYERS.sites(questions[0].subject))
    return TrialOutcome(
        figures,
        tuple(text.number for text in texts),
        sentence_of(figures),
        plots=plots_of(figures, classes, heads),
        notes=(f"scope: {scope}", *sorted({_removal_note(each, removal) for each in questions})),
        details={
            "scope": str(scope),
            "estimates": estimates_as_json(figures),
            "significant": significant_shares(p_values),
            "classes": classes,
            "heads": heads,
        },
    )


def _removal_note(question: Question, removal: str | None) -> str:
    return f"removal: {removal or usual_removal(question)}"


def _compare(question: Question, scope: Scope, removal: str | None) -> Iterator[TextScores]:
    """The scores of each text of a batch, for the tokens that the scope is about."""
    if question.is_shared:
        raise UsageError("agreement takes one target for each text, and this text has several")
    tables = kept(f"agreement {question.order}", partial(_tables, question, scope, removal))
    for number, target, table in zip(question.order, question.targets, tables, strict=True):
        yield TextScores(number, target.name, table)


def _tables(question: Question, scope: Scope, removal: str | None) -> Iterator[MethodScores]:
    attention, known = attention_importance(question, scope)
    scores = [
        attention,
        detached_gradient_importance(question),
        gradient_importance(question),
        left_out_importance(question, removal or usual_removal(question)),
        *head_importances(question, LAYERS.sites(question.subject)),
    ]
    table = torch.stack([each.double() for each in scores], dim=1).cpu().numpy()
    marks = known.cpu().numpy()
    for row in range(len(question)):
        tokens = [place for place in removable(question, row) if marks[row, place]]
        yield table[row][:, tokens]


def attention_importance(question: Question, scope: Scope) -> tuple[TokenScores, Hidden]:
    """The weight of each token, a mean over the sites, heads and rows of a scope.

    Also returns which tokens the scope is about; the others have a weight of zero.
    """
    opened = {each.site.name: each for each in scope.open_sites(question)}

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
    for stream, own, seen in held:
        weights[:, stream.start : stream.stop] += own / len(held)
        known[:, stream.start : stream.stop] |= seen
    return weights, known


def gradient_importance(question: Question) -> TokenScores:
    """How far each token moves the target's probability to first order, in absolute value.

    It is the gradient on the token's vector times that vector: the derivative on its one-hot entry.
    """
    found, _ = embedding_gradients(question, "probability")
    scores = [(each.start, inner_products(each.values, each.gradient).abs()) for each in found]
    return over_tokens(question.inputs, scores)


def detached_gradient_importance(question: Question) -> TokenScores:
    """Like `gradient_importance`, but the attention weights of all layers are constants."""
    with question.subject.tap(edits.apply(torch.Tensor.detach), sites=()):
        return gradient_importance(question)


def left_out_importance(question: Question, how: str) -> TokenScores:
    """How far the answer moves without each token, in total variation.

    Zero for tokens that are never removed.
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
    """The attention of every head of these sites at the position that is read out."""
    readout = find_readout(question).double()
    length = len(question.inputs.tokens[0])

    def keep(call: Call) -> Tensor:
        rows = torch.einsum("bhqk,bq->hbk", call.weights.double(), readout)
        stream = question.inputs.queries_and_keys(call.site.kind)[1]
        return torch.nn.functional.pad(rows, (stream.start, length - stream.stop))

    return [head for rows in fold_attention(question, keep, sites).held for head in rows]
