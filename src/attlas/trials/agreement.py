"""Agreement: whether attention orders tokens as gradients do, and as the model misses them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attlas.errors import UsageError
from attlas.models.asking.question import Question
from attlas.removing.removal import removable, usual_removal
from attlas.shapes import MethodScores
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
from attlas.trials.reading.importances import (
    attention_importance,
    detached_gradient_importance,
    gradient_importance,
    head_importances,
    left_out_importance,
)
from attlas.trials.support.findings import estimates_of
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial

LAYERS = Scope("layer")  # whose heads are compared one by one, whatever the scope


@dataclass(frozen=True, eq=False)
class TextScores:
    """What is compared of one text: scores of its tokens, by SCORES and then by each head."""

    number: int
    label: str  # what the model says of it
    scores: MethodScores


@trial(
    cost="cheap",
    paper="Jain & Wallace 2019, arXiv:1902.10186",
    reading="Does attention order the tokens as gradients do, and as the model misses them?",
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
    stands beside it, and how far the gradient agrees with leave-one-out is the yardstick. `removal`
    says what leaving out means: deleting, or masking where places count, if none is given. The
    overlap is of this `share` of the tokens from the top. Nothing is drawn, whatever the `seed`.
    """
    if not 0 < share <= 1:
        raise UsageError(f"share is above 0 and at most 1, not {share}")
    found = [text for question in questions for text in _compare(question, scope, removal)]
    if not found:
        raise UsageError("agreement needs at least one text")
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
            "estimates": estimates_of(figures),
            "significant": significant_shares(p_values),
            "classes": classes,
            "heads": heads,
        },
    )


def _removal_note(question: Question, removal: str | None) -> str:
    return f"removal: {removal or usual_removal(question)}"


def _compare(question: Question, scope: Scope, removal: str | None) -> Iterator[TextScores]:
    """The scores of each text of a batch, on the tokens that the scope is about."""
    if question.is_shared:
        raise UsageError("a text has several targets: ask about one of them")
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
    for row, number in enumerate(question.order):
        tokens = [place for place in removable(question, row) if marks[row, place]]
        yield TextScores(number, question.targets[row].name, table[row][:, tokens])
