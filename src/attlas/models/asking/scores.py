"""Scores: the model's logits for a question, and the score of each target."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.models.asking.many_targets import differentiate_each, reached_tokens
from attlas.models.asking.question import Question, first_places, learn
from attlas.models.encoding.target import score_each
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap.edits import Edit
from attlas.shapes import BatchScores, Hidden, Logits, Table


def run_logits(question: Question) -> Logits:
    """The output from the first place where a target is read; in a graph if grad is enabled."""
    subject, places = question.subject, [target.first_place() for target in question.targets]
    return subject.run(question.inputs.arguments, min(places) if subject.predicts_next else None)


def target_scores(question: Question, of: str, edits: Edit | Sequence[Edit] = ()) -> BatchScores:
    """The score of each row's target, `logit` or `probability`, under these edits of attention."""
    question.answered  # noqa: B018  before a tap changes what the model computes
    with torch.no_grad():
        if not edits:
            with evaluation_mode(question.subject.model):
                return target_scores_in_graph(question, of)
        with question.subject.tap(edits):
            return target_scores_in_graph(question, of)


def target_scores_in_graph(question: Question, of: str) -> BatchScores:
    """Like `target_scores`, for use inside an open tap: it keeps the autograd graph."""
    logits = run_logits(question).expand(len(question), -1, -1)
    return score_each(question.targets, logits, of)


def own_scores_in_graph(question: Question, of: str) -> BatchScores:
    """Like `target_scores_in_graph`, for a pass that changes nothing of what the model computes.

    Targets that are not known yet are found from its output.
    """
    if question.is_answered:
        return target_scores_in_graph(question, of)
    subject, inputs, asked = question.subject, question.inputs, question.asked
    logits = subject.run_unchecked(inputs.arguments, first_places(subject, inputs, asked))
    learn(subject, inputs, asked, logits)
    return score_each(question.targets, logits, of)


def score_table(question: Question, of: str) -> Table:
    """The score of every target on every input, `[input, target]`."""
    with torch.no_grad(), evaluation_mode(question.subject.model):
        logits = run_logits(question)
        return torch.stack([target.score(logits, of) for target in question.targets], dim=1)


def visible_tokens(question: Question) -> Hidden:
    """Which tokens each target can depend on: not those that are written after it."""
    return reached_tokens(question.inputs, question.targets).to(question.subject.device)


def differentiate(
    question: Question, scores: Tensor, leaves: Sequence[Tensor], stream: Sequence[Tensor]
) -> Sequence[Tensor | None]:
    """The gradient of each row's score on each leaf."""
    if question.is_shared:
        return differentiate_each(scores, leaves, stream[0], question.targets)
    return torch.autograd.grad(scores.sum(), leaves, allow_unused=True)
