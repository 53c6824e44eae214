"""Reading attention: at once, layer by layer, or with gradients; the readout and its states."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.many_targets import share_of_each
from attlas.models.asking.map_selection import map_bytes
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question, first_places, learn
from attlas.models.asking.readout import (
    blocks_beside_graph,
    last_stream,
    readout_weights,
    shares,
    stream_gradients,
)
from attlas.models.asking.scores import differentiate, own_scores_in_graph, target_scores_in_graph
from attlas.models.encoding.target import score_each
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.model_lock import model_lock
from attlas.models.tap.call import Call
from attlas.models.tap.edits import Edit
from attlas.models.tap.folding import among
from attlas.models.tap.on_patches import call_on_patches, gradient_on_patches, rows_on_patches
from attlas.models.tap.opening import is_tapped, tap
from attlas.models.tap.recording import is_recordable, run_recorded
from attlas.models.tap.two_ways import Ran, hides, two_ways
from attlas.results import Site
from attlas.shapes import Attention, QueryWeights, StateRows

Held = TypeVar("Held")
MOST_RECORDED = 2**26  # bytes of maps: texts above it keep a GPU busy for longer than Python


@dataclass(frozen=True, eq=False)
class Folded(Generic[Held]):
    """What `keep` returned for each attention, and the positions that the target is read from."""

    held: Sequence[Held]
    readout: QueryWeights


def read_attention(question: Question) -> list[Call]:
    """The attention of every site, all in memory at once."""
    subject = question.subject
    known, stages = set(subject.sites), subject.stages(question.inputs)
    calls = subject.read(question.inputs)
    return [call_on_patches(call, stages) for call in calls if call.site in known]


def fold_attention(
    question: Question, keep: Callable[[Call], Held], sites: Collection[Site] | None = None
) -> Folded[Held]:
    """Reduce the attention of these sites, by default all, as it is computed in one forward pass.

    `keep` gets each call and returns what to hold of it, so only one layer is in memory at a time.
    """
    stages = question.subject.stages(question.inputs)

    def keep_on_patches(call: Call) -> Held:
        return keep(call_on_patches(call, stages))

    played = _play(question, _chosen(question, sites), gradients=False)
    if played is not None:
        with torch.no_grad():
            return Folded(
                [keep_on_patches(call) for call in played.calls],
                readout_from(question, *played.gradients),
            )
    with (
        torch.enable_grad(),
        question.subject.folding(keep_on_patches, _chosen(question, sites)) as held,
        blocks_beside_graph(question.subject),
        last_stream(question.subject) as stream,
    ):
        total = own_scores_in_graph(question, "logit").sum()
        gradients = stream_gradients(question.subject, total, stream)
    return Folded(held, readout_from(question, *gradients))


def attention_gradients(
    question: Question,
    of: str,
    edits: Edit | Sequence[Edit] = (),
    sites: Collection[Site] | None = None,
) -> list[tuple[Call, Attention]]:
    """The attention of these sites, by default all, with the gradient of the target on it.

    The gradient is zero if the output does not depend on a site.
    """
    if edits:
        question.answered  # noqa: B018  before a tap changes what the model computes
    opened = question.subject.tap(edits, gradients=True, sites=_chosen(question, sites))
    with torch.enable_grad(), opened as seen, last_stream(question.subject) as stream:
        scores = own_scores_in_graph(question, of)
        gradients = differentiate(question, scores, seen.weights, stream)
    return _pair(question, seen.calls, gradients)


def gradients_and_readout(
    question: Question, sites: Collection[Site] | None = None
) -> Folded[tuple[Call, Attention]]:
    """Like `attention_gradients` for the logit, with the readout from the same pass."""
    played = _play(question, _chosen(question, sites), gradients=True)
    if played is not None:
        count = len(played.calls)
        pairs = _pair(question, played.calls, played.gradients[:count])
        return Folded(pairs, readout_from(question, *played.gradients[count:]))
    opened = question.subject.tap(gradients=True, sites=_chosen(question, sites))
    with torch.enable_grad(), opened as seen, last_stream(question.subject) as stream:
        scores = own_scores_in_graph(question, "logit")
        gradients: Sequence[Tensor | None]
        if question.is_shared:
            last = torch.autograd.grad(scores.sum(), stream, retain_graph=True)
            gradients = differentiate(question, scores, seen.weights, stream)
        else:
            leaves = [*seen.weights, *stream]
            both = torch.autograd.grad(scores.sum(), leaves, materialize_grads=True)
            gradients, last = both[: len(seen.weights)], both[len(seen.weights) :]
    return Folded(_pair(question, seen.calls, gradients), readout_from(question, *last))


@dataclass(frozen=True, eq=False)
class Played:
    """What a recorded pass gave: the attention, and the gradients that were asked for.

    These are on the attention, if it was asked for, and then on the last stream.
    """

    calls: Sequence[Call]
    gradients: Sequence[Tensor]


def _play(question: Question, sites: Collection[Site], *, gradients: bool) -> Played | None:
    """One pass over a short text by a recording; None if there is none (see `two_ways`).

    Targets that are not known yet are found from its output.
    """
    subject, inputs, asked = question.subject, question.inputs, question.asked
    if not _may_be_recorded(question, sites):
        return None
    if gradients:
        subject.check_gradients(sites)
    first, hidden = first_places(subject, inputs, asked), hides(inputs.arguments)
    key = ("attention", first, hidden, gradients, tuple(site.name for site in sites))
    run = partial(_read_pass, subject, sites, first, gradients)
    with model_lock(subject.model):
        recorded = two_ways(subject.model, key, inputs.arguments, run)
        if recorded is None:
            return None
        output, (weights, masks, values) = recorded.play(inputs.arguments)
        table = output.cpu()
        if question.is_answered:
            subject.check_finite(table)
        else:
            learn(subject, inputs, asked, table)
        with torch.enable_grad():
            scores = score_each(question.targets, table.requires_grad_(), "logit")
            (slope,) = torch.autograd.grad(scores.sum(), table)
        found = recorded.play_back(slope)
    rows = zip(recorded.about, weights, masks, values, strict=True)
    return Played([Call(*about, *parts) for about, *parts in rows], found)


def _may_be_recorded(question: Question, sites: Collection[Site]) -> bool:
    """Whether a question is one short text on a GPU, and nothing else takes part in its pass."""
    subject, inputs = question.subject, question.inputs
    return (
        len(question) == len(inputs) == 1
        and can_be_recorded(subject)
        and bool(sites)
        and map_bytes(inputs, sites) <= MOST_RECORDED
    )


def can_be_recorded(subject: OpenModel) -> bool:
    """Whether a model is on one GPU, reads no lengths of texts there, and no tap is open on it."""
    on_gpu = subject.device.type == "cuda"
    return on_gpu and not is_tapped(subject.model) and is_recordable(subject.model)


def _read_pass(
    subject: OpenModel,
    sites: Collection[Site],
    first: int | None,
    gradients: bool,
    arguments: Mapping[str, Tensor],
) -> Ran:
    opened = tap(
        subject.model,
        gradients=gradients,
        wants=among(sites),
        keep=None if gradients else lambda call: call,
    )
    with (
        torch.enable_grad(),
        evaluation_mode(subject.model),
        opened as seen,
        last_stream(subject) as stream,
    ):
        output = subject.run(arguments, first)
    read: list[list[Tensor | None]] = [
        [each.weights for each in seen.calls],
        [each.mask for each in seen.calls],
        [each.values for each in seen.calls],
    ]
    leaves = [*(seen.weights if gradients else ()), *stream]
    return Ran(output, read, leaves, [(each.site, each.path) for each in seen.calls])


def _chosen(question: Question, sites: Collection[Site] | None) -> Collection[Site]:
    return question.subject.sites if sites is None else sites


def look_recorded(question: Question) -> None:
    """Find the target of each row, by a recorded pass where that is possible."""
    subject, inputs = question.subject, question.inputs
    if question.is_answered or not can_be_recorded(question.subject):
        return
    first = first_places(subject, inputs, question.asked)

    def work(arguments: Mapping[str, Tensor]) -> list[Tensor]:
        return [subject.run(arguments, first)]

    with evaluation_mode(subject.model), torch.no_grad():
        key = ("look", first, hides(inputs.arguments))
        (logits,) = run_recorded(subject.model, key, inputs.arguments, work, checked=False)
    learn_targets(question, logits)


def learn_targets(question: Question, logits: Tensor) -> None:
    """Find targets that are not known from the output of a pass that was not looked at yet."""
    if not question.is_answered:
        learn(question.subject, question.inputs, question.asked, logits)


def find_readout(question: Question) -> QueryWeights:
    """The positions of the last layer that the target is read from, as weights that sum to one."""
    return fold_attention(question, lambda _: None, sites=()).readout


def readout_states(question: Question) -> StateRows:
    """The output of the last block where each target is read, `[batch, feature]`.

    If a target is read at several positions, it is their mean, each as heavy as its gradient. A
    model that reads a text and a picture has the states of both, side by side.
    """
    if question.is_shared:
        raise UsageError("one input has several targets: ask about one of them")
    subject = question.subject
    with torch.enable_grad(), evaluation_mode(subject.model), last_stream(subject) as stream:
        total = target_scores_in_graph(question, "logit").sum()
        gradients = stream_gradients(question.subject, total, stream)
    parts = [
        (shares(gradient)[..., None] * state.detach().float()).sum(dim=1)
        for state, gradient in zip(stream, gradients, strict=True)
    ]
    return torch.cat(parts, dim=1)


def readout_from(question: Question, *gradients: Tensor) -> QueryWeights:
    """The positions that each target is read from, by its gradient on the last stream.

    A model may fill its input up to whole windows; it reads nothing from what comes after the text.
    """
    device = question.subject.device
    return readout_beside(question, *(gradient.to(device) for gradient in gradients))


def readout_beside(question: Question, *gradients: Tensor) -> QueryWeights:
    """Like `readout_from`, on the device that the gradients are on."""
    if question.is_shared:
        gradients = (torch.cat(list(share_of_each(gradients[0], question.targets))),)
    found = readout_weights(question.subject, *gradients)
    spread = rows_on_patches(found, question.subject.stages(question.inputs))
    return spread[:, : len(question.inputs.tokens[0])]


def _pair(
    question: Question, calls: Sequence[Call], gradients: Sequence[Tensor | None]
) -> list[tuple[Call, Attention]]:
    """Each call with the gradient on its weights, or zero if there is none."""
    stages = question.subject.stages(question.inputs)
    detached = [replace(call, weights=call.weights.detach()) for call in calls]
    found = [
        (call, torch.zeros_like(call.weights) if gradient is None else gradient)
        for call, gradient in zip(detached, gradients, strict=True)
    ]
    return [
        (call_on_patches(call, stages), gradient_on_patches(gradient, stages))
        for call, gradient in found
    ]
