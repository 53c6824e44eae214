"""Passes that carry relevance back to tokens or attention, and a check that none is lost.

CP-LRP conserves relevance if every operation of a model has the right rule and biases are counted.
`check_conservation` refuses a model where it does not.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from attlas.errors import NotDefinedError, UnsupportedModelError
from attlas.models.asking.ask import ask
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.scores import own_scores_in_graph, run_logits, target_scores_in_graph
from attlas.models.encoding.encode_input import sample_input
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Pick, Target
from attlas.models.facts.evaluation_mode import evaluation_mode, merged_adapters
from attlas.models.facts.sites import find_recurrent
from attlas.models.facts.twins import twin_of
from attlas.models.loading.offloading import dtype_of
from attlas.models.relevance.gradient_rules import AttnRules, CountingRules
from attlas.models.relevance.positive_rules import PositiveRules
from attlas.models.relevance.rules import RelevanceRules, caught
from attlas.models.states.embeddings import entering, over_tokens
from attlas.models.states.entrance import Entrance
from attlas.models.tap.on_patches import effects_on_patches
from attlas.results import Site
from attlas.shapes import BatchScores, Logits, TokenScores, Vectors

TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}  # as a share of the absolute relevance
COARSE = 2e-2  # in half precision
_objections: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


@contextmanager
def ruled(question: Question, rules: RelevanceRules) -> Iterator[None]:
    """Let the model's operations follow these rules within the block.

    Open a tap inside the block, so that the attention it computes follows the rules too.
    """
    with torch.enable_grad(), rules, caught(question.subject.model, rules):
        yield


@dataclass(frozen=True, eq=False)
class Carried:
    """Everything that entered a pass, with its gradient: token vectors first, then constants."""

    entrance: Entrance
    constants: Sequence[tuple[int, Tensor]]  # the number of leaves before each, and the constant
    gradients: Sequence[Tensor | None]
    scores: BatchScores

    def relevances(self) -> list[Tensor]:
        """The relevance of everything that entered, in float64."""
        leaves = [*self.entrance.leaves, *(leaf for _, leaf in self.constants)]
        return [
            leaf.detach().double() * gradient.double()
            for leaf, gradient in zip(leaves, self.gradients, strict=True)
            if gradient is not None
        ]


def carry(question: Question, rules_of: type[AttnRules]) -> Carried:
    """Run the model forward unchanged, and backward by these rules."""
    subject = question.subject
    subject.check_gradients()
    with evaluation_mode(subject.model), entering(subject, question.inputs) as entrance:
        rules = rules_of(lambda: entrance.leaves)
        with ruled(question, rules), subject.tap(sites=()):
            scores = own_scores_in_graph(question, "logit")
    leaves = [*entrance.all_leaves(), *(leaf for _, leaf in rules.constants)]
    found = torch.autograd.grad(scores.sum(), leaves, allow_unused=True)
    return Carried(entrance, rules.constants, found, scores.detach())


def token_relevance(question: Question, rules_of: type[AttnRules]) -> TokenScores:
    """The relevance of each token: of its vector, and of the constants added to it."""
    carried = carry(question, rules_of)
    entrance, count = carried.entrance, len(carried.entrance.leaves)
    entered = entrance.entered(carried.gradients[:count])
    streams = [(each.start, _products(each.values, each.gradient)) for each in entered]
    relevance = over_tokens(question.inputs, streams)
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
    """The relevance at the attention of some sites, and the share of relevance that was lost."""

    attention: Sequence[Tensor]  # each `[batch, head, query, key]`
    lost: float


def attention_relevance(question: Question, sites: Collection[Site]) -> Arrived:
    """The relevance of the target at the attention of these sites, starting with 1 at its logits.

    The relevance of a contrast is computed separately and subtracted. A model in float32 runs in
    float64 meanwhile, if it can: shares are divided by sums near zero, of which float32 leaves
    few digits.
    """
    found, stages = _in_best_precision(question, sites), question.subject.stages(question.inputs)
    return Arrived([effects_on_patches(each, stages) for each in found.attention], found.lost)


def _in_best_precision(question: Question, sites: Collection[Site]) -> Arrived:
    model, device = question.subject.model, question.subject.device
    with evaluation_mode(model), merged_adapters(model):
        is_single = dtype_of(model) == torch.float32
        if not is_single or device.type == "mps":  # there is no float64 on mps
            return _attention_relevance(question, sites)
        try:
            found = _attention_relevance(_in_double(question), sites)
            return Arrived([each.float() for each in found.attention], found.lost)
        # No memory for it, or a constant that the model keeps in float32.
        except (RuntimeError, UnsupportedModelError):
            return _attention_relevance(question, sites)


def _in_double(question: Question) -> Question:
    """The same question of a copy of the model in float64."""
    inputs, twin = question.inputs, twin_of(question.subject, _doubled)
    arguments = {name: _doubled(each) for name, each in inputs.arguments.items()}
    return replace(question.about(replace(inputs, arguments=arguments)), subject=twin)


def _doubled(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.dtype == torch.float32 else tensor


def _attention_relevance(question: Question, sites: Collection[Site]) -> Arrived:
    subject, names = question.subject, {site.name for site in sites}
    with evaluation_mode(subject.model), entering(subject, question.inputs) as entrance:
        rules = PositiveRules(len(question))
        with ruled(question, rules), subject.tap(gradients=True) as seen:
            logits = run_logits(question)
    if any(len(leaf) != len(question) for leaf in entrance.leaves) and len(question) > 1:
        # If rows are not the first axis, shared relevance cannot be separated by row.
        return _together(
            [_attention_relevance(question.rows([row]), sites) for row in range(len(question))]
        )
    read = [call.weights for call in seen.calls if call.site.name in names]
    ends = [*read, *entrance.leaves, *rules.lost]
    found = _arrive(
        logits, ends, [_start(each.picks, each) for each in question.targets], len(read)
    )
    contrasts = [_start(each.contrast, each) for each in question.targets]
    if not any(contrasts):
        return found
    other = _arrive(logits, ends, contrasts, len(read))
    both = zip(found.attention, other.attention, strict=True)
    return Arrived([first - second for first, second in both], max(found.lost, other.lost))


def _start(picks: Sequence[Pick], target: Target) -> dict[Pick, float]:
    """The relevance that a row starts with: 1 at each logit, or 1 for either of them together."""
    return dict.fromkeys(picks, 1 / len(picks) if target.either else 1.0) if picks else {}


def _arrive(
    logits: Logits, ends: Sequence[Tensor], starts: Sequence[Mapping[Pick, float]], read: int
) -> Arrived:
    """The relevance at these ends, starting with so much at each logit that a row picks."""
    start = torch.zeros_like(logits)
    for row, chosen in enumerate(starts):
        for (place, choice), relevance in chosen.items():
            start[row, place, choice] += relevance
    found = torch.autograd.grad(logits, ends, start, retain_graph=True, materialize_grads=True)
    came = sum(float(each.double().sum()) for each in found[read:])
    return Arrived(found[:read], abs(1 - came / float(start.double().sum())))


def _together(rows: Sequence[Arrived]) -> Arrived:
    sites = zip(*(each.attention for each in rows), strict=True)
    return Arrived([torch.cat(each) for each in sites], max(each.lost for each in rows))


def check_conservation(subject: OpenModel) -> None:
    """Raise if this model creates or loses relevance; tested once, on a short input."""
    model = subject.model
    if model not in _objections:
        request = Request(prefix="" if subject.has_decoder else None, truncate=True)
        (question,) = ask(subject, [sample_input(subject)], request)
        _objections[model] = _why_not(question)
    if _objections[model]:
        raise without_rule(model, _objections[model])


def _why_not(question: Question) -> str:
    """Why relevance cannot be followed through the model; an empty string if it can."""
    with torch.no_grad(), question.subject.tap(sites=()):
        plain = target_scores_in_graph(question, "logit")
    tolerance = TOLERANCE.get(question.subject.dtype, COARSE)
    watched = carry(question, AttnRules).scores
    if not torch.allclose(watched, plain, rtol=tolerance, atol=tolerance):
        return "it computes another output when its operations follow relevance rules"
    counted = carry(question, CountingRules)
    logit, found = float(counted.scores.sum()), counted.relevances()
    total = sum(float(each.sum()) for each in found)
    if abs(total - logit) <= tolerance * sum(float(each.abs().sum()) for each in found):
        return ""
    return (
        f"relevance is not conserved: of a logit of {logit:.4g}, {total:.4g} arrives, so one of "
        "its operations has no rule"
    )


def without_rule(model: nn.Module, said: str) -> UnsupportedModelError:
    """What to raise where a model creates or loses relevance.

    The rules are for transformers: where tokens are mixed without attention, there are none.
    """
    mixer, told = find_recurrent(model), f"{type(model).__name__}: {said}"
    return UnsupportedModelError(told) if mixer is None else NotDefinedError(f"{told} ({mixer})")
