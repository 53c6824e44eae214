"""Conservation: whether relevance is neither made nor lost on its way through a model.

CP-LRP conserves by its construction, if every operation of a model is met by the right rule and
what the biases take is counted. A model of which that is not so is refused.
"""

from weakref import WeakKeyDictionary

import torch
from torch import nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.ask import ask
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.scores import target_scores_in_graph
from attlas.models.encoding.encode_input import sample_input
from attlas.models.encoding.request import Request
from attlas.models.relevance.gradient_rules import AttnRules, CountingRules
from attlas.models.relevance.passes import carry

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}  # of the relevance of all parts, unsigned
COARSE = 2e-2  # in half precision
_found: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


def check_conservation(subject: OpenModel) -> None:
    """An error if relevance is made or lost in this model; found once, on a short input."""
    model = subject.model
    if model not in _found:
        request = Request(prefix="" if subject.has_decoder else None, truncate=True)
        (question,) = ask(subject, [sample_input(subject)], request)
        _found[model] = _why_not(question)
    if _found[model]:
        raise UnsupportedModelError(f"{type(model).__name__}: {_found[model]}")


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
