"""Passes of a model that carry relevance back: to its tokens, or to its attention."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.ask import ask
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits, target_scores_in_graph
from attlas.models.encoding.encode_input import sample_input
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Pick
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.relevance.gradient_rules import AttnRules, CountingRules
from attlas.models.relevance.positive_rules import PositiveRules
from attlas.models.relevance.rules import RelevanceRules, caught
from attlas.models.states.embeddings import Entrance, entering, over_tokens
from attlas.results import Site
from attlas.shapes import BatchScores, Logits, TokenScores, Vectors

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}  # of the relevance of all parts, unsigned
COARSE = 2e-2  # in half precision
_objections: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


@contextmanager
def ruled(question: Question, rules: RelevanceRules) -> Iterator[None]:
    """Within the block, the model's activations follow these rules.

    A tap is opened inside it, so that the attention that the tap spells out follows them too.
    """
    with torch.enable_grad(), rules, caught(question.subject.model, rules):
        yield


@dataclass(frozen=True, eq=False)
class Carried:
    """What came in, with the gradient on it: the vectors of tokens, and then the constants."""

    entrance: Entrance
    constants: Sequence[tuple[int, Tensor]]  # how many leaves came before, and what was added
    gradients: Sequence[Tensor | None]
    scores: BatchScores

    def parts(self) -> list[Tensor]:
        """The relevance of everything that came in, in float64."""
        leaves = [*self.entrance.leaves, *(leaf for _, leaf in self.constants)]
        return [
            leaf.detach().double() * gradient.double()
            for leaf, gradient in zip(leaves, self.gradients, strict=True)
            if gradient is not None
        ]


def carry(question: Question, rules_of: type[AttnRules]) -> Carried:
    """Run the model forward as it is, and back by these rules."""
    subject = question.subject
    with evaluation_mode(subject.model), entering(subject, question.inputs) as entrance:
        rules = rules_of(lambda: entrance.leaves)
        with ruled(question, rules), subject.tap(sites=()):
            scores = target_scores_in_graph(question, "logit")
    leaves = [*entrance.leaves, *(leaf for _, leaf in rules.constants)]
    found = torch.autograd.grad(scores.sum(), leaves, allow_unused=True)
    return Carried(entrance, rules.constants, found, scores.detach())


def token_relevance(question: Question, rules_of: type[AttnRules]) -> TokenScores:
    """The relevance of each token: of its own vector, and of what is added to it on its way in."""
    carried = carry(question, rules_of)
    entrance, count = carried.entrance, len(carried.entrance.leaves)
    entered = entrance.entered(carried.gradients[:count])
    parts = [(each.start, _products(each.values, each.gradient)) for each in entered]
    relevance = over_tokens(question.inputs, parts)
    for (number, leaf), gradient in zip(carried.constants, carried.gradients[count:], strict=True):
        if gradient is not None:
            start, vectors = entrance.beside(number - 1, leaf.detach())
            _, slopes = entrance.beside(number - 1, gradient)
            relevance[:, start : start + slopes.shape[1]] += _products(vectors, slopes)
    return relevance


def _products(vectors: Vectors, gradient: Vectors) -> TokenScores:
    wide = torch.promote_types(vectors.dtype, torch.float32)
    return (vectors.to(wide) * gradient.to(wide)).sum(dim=-1)


@dataclass(frozen=True, eq=False)
class Arrived:
    """The relevance at the attention of some sites, and what share of all was lost on the way."""

    attention: Sequence[Tensor]  # each `[batch, head, query, key]`
    lost: float


def attention_relevance(question: Question, sites: Collection[Site]) -> Arrived:
    """The relevance of the target at the attention of these sites: one at each logit it picks.

    What it is contrasted with is carried back by itself and taken away.
    """
    subject, names = question.subject, {site.name for site in sites}
    with evaluation_mode(subject.model), entering(subject, question.inputs) as entrance:
        rules = PositiveRules(len(question))
        with ruled(question, rules), subject.tap(gradients=True) as seen:
            logits = run_logits(question)
    if any(len(leaf) != len(question) for leaf in entrance.leaves) and len(question) > 1:
        # Rows that do not come first cannot be told apart where relevance is shared.
        return _together(
            [attention_relevance(question.rows([row]), sites) for row in range(len(question))]
        )
    read = [call.weights for call in seen.calls if call.site.name in names]
    ends = [*read, *entrance.leaves, *rules.lost]
    found = _arrive(logits, ends, [target.picks for target in question.targets], len(read))
    contrasts = [target.contrast for target in question.targets]
    if not any(contrasts):
        return found
    other = _arrive(logits, ends, contrasts, len(read))
    both = zip(found.attention, other.attention, strict=True)
    return Arrived([first - second for first, second in both], max(found.lost, other.lost))


def _arrive(
    logits: Logits, ends: Sequence[Tensor], picks: Sequence[Sequence[Pick]], read: int
) -> Arrived:
    """What comes to these ends of ones at the logits that each row picks."""
    start = torch.zeros_like(logits)
    for row, chosen in enumerate(picks):
        for place, choice in chosen:
            start[row, place, choice] += 1
    found = torch.autograd.grad(logits, ends, start, retain_graph=True, materialize_grads=True)
    came = sum(float(each.double().sum()) for each in found[read:])
    return Arrived(found[:read], abs(1 - came / float(start.double().sum())))


def _together(rows: Sequence[Arrived]) -> Arrived:
    sites = zip(*(each.attention for each in rows), strict=True)
    return Arrived([torch.cat(each) for each in sites], max(each.lost for each in rows))


def check_conservation(subject: OpenModel) -> None:
    """An error if relevance is made or lost in this model; found once, on a short input."""
    model = subject.model
    if model not in _objections:
        request = Request(prefix="" if subject.has_decoder else None, truncate=True)
        (question,) = ask(subject, [sample_input(subject)], request)
        _objections[model] = _why_not(question)
    if _objections[model]:
        raise UnsupportedModelError(f"{type(model).__name__}: {_objections[model]}")


def _why_not(question: Question) -> str:
    """Why relevance cannot be followed through the model; nothing if it can."""
    with torch.no_grad(), question.subject.tap(sites=()):
        plain = target_scores_in_graph(question, "logit")
    tolerance = TOLERANCE.get(next(question.subject.model.parameters()).dtype, COARSE)
    watched = carry(question, AttnRules).scores
    if not torch.allclose(watched, plain, rtol=tolerance, atol=tolerance):
        return "it computes something else when its operations are watched for relevance"
    counted = carry(question, CountingRules)
    logit, parts = float(counted.scores.sum()), counted.parts()
    total = sum(float(part.sum()) for part in parts)
    if abs(total - logit) <= tolerance * sum(float(part.abs().sum()) for part in parts):
        return ""
    return (
        f"relevance is not conserved: of a logit of {logit:.4g}, {total:.4g} arrives, so some "
        "operation of it has no rule"
    )
