"""Handing over: one fused pass that keeps what each attention was handed, and the readout."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from attlas.errors import AttlasError, UnsupportedModelError
from attlas.models.asking.as_found import distance, rounding
from attlas.models.asking.many_targets import share_of_each
from attlas.models.asking.map_selection import largest_map
from attlas.models.asking.open_model import OWN_FAILURES, OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.reading import readout_from
from attlas.models.asking.readout import (
    blocks_beside_graph,
    last_stream,
    shares,
    stream_gradients,
)
from attlas.models.asking.scores import own_scores_in_graph
from attlas.models.encoding.encode_input import sample_inputs
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.sites import Owner
from attlas.models.loading.planned_attention import planned_attention
from attlas.models.rows.handed import HandedCall
from attlas.models.rows.sliced_masks import everywhere, name_of_sliced, sliced
from attlas.models.tap.eager_attention import mix
from attlas.models.tap.folding import among
from attlas.models.tap.opening import is_tapped, opened_by
from attlas.models.tap.tap import Tap
from attlas.results import Site
from attlas.shapes import QueryWeights, TokenScores

LONG = 2**24  # bytes of one layer's weights of one input, from which on rows are computed alone
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
Met = Callable[[HandedCall, Tensor], None]
SIGHTS = 2  # so often must a shape have come before attention is planned for it
_seen: WeakKeyDictionary[nn.Module, Counter[tuple[int, int]]] = WeakKeyDictionary()
_agrees: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
_slices: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()  # whether masks may be sliced


@dataclass(frozen=True, eq=False)
class Handover:
    """What each attention was handed, lowest layer first, and where the target is read.

    The readout is in the precision that scores are computed in.
    """

    calls: Sequence[HandedCall]
    readout: QueryWeights


class HandingTap(Tap):
    """A tap that keeps what each attention is handed, and leaves its weights uncomputed."""

    def __init__(
        self,
        model: nn.Module,
        owners: Sequence[Owner],
        sites: Collection[Site],
        *,
        gradients: bool,
        met: Met | None = None,
    ) -> None:
        super().__init__(model, owners, gradients=gradients, wants=among(sites))
        self._met = met  # is told each call that is kept, with its output
        self.calls: list[HandedCall] = []
        self.outputs: list[Tensor] = []  # of these calls, in the graph if gradients are asked for

    def complete(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        mask: Tensor | None,
        given: Mapping[str, Any],
    ) -> Tensor | None:
        """The mask as it was handed over: each slice of rows makes its own."""
        return mask

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Sequence[Tap],
    ) -> Tensor:
        """The attention output of a call; what made it is kept if its site is read."""
        owner = self._owners[id(module)]
        self._unmet[owner.path] -= 1
        (part,) = self._parts(owner, streams[0].shape[1])
        by_sdpa = self.came_with(module) == "sdpa"
        call = HandedCall(part.site, module, streams, sliced(mask), given, by_sdpa)
        if self.wants is not None and not self.wants(part.site):
            return call.output()
        if call.pulls and not self.gradients:
            call = call.with_graph()
        output = call.output()
        if self.gradients and not output.requires_grad:
            output = output.detach().requires_grad_()
        self.calls.append(call.beside_graph())
        self.outputs.append(output)
        if self._met is not None:
            self._met(self.calls[-1], output.detach())
        return output


def hand_over(
    question: Question,
    sites: Collection[Site],
    met: Met | None = None,
) -> Handover:
    """What the attention at these sites is handed, and the readout, from one forward pass.

    `met` is told each of these calls with its output as soon as it is there.
    """
    subject = question.subject
    with (
        torch.enable_grad(),
        _handing(subject, sites, gradients=False, met=met) as tap,
        _planned(question),
        blocks_beside_graph(subject),
        last_stream(subject) as stream,
    ):
        total = own_scores_in_graph(question, "logit").sum()
        gradients = stream_gradients(subject, total, stream)
    return _checked(tap.calls, readout_from(question, *gradients))


def score_handed(
    question: Question, sites: Collection[Site], score: Callable[[Handover], TokenScores]
) -> TokenScores:
    """The scores that a function makes of what was handed over with the gradient on each output.

    There is one forward pass, and one backward pass for all inputs, or one for each of several
    targets of an input: `score` then gets the targets one by one.
    """
    subject = question.subject
    subject.check_gradients(sites)
    with (
        torch.enable_grad(),
        _handing(subject, sites, gradients=True) as tap,
        _planned(question),
        last_stream(subject) as stream,
    ):
        total = own_scores_in_graph(question, "logit").sum()
        found = _each_backward(question, total, tap.outputs, stream)
        return torch.cat([_scored(tap.calls, *each, score) for each in found])


def _scored(
    calls: Sequence[HandedCall],
    gradients: Sequence[Tensor],
    readout: QueryWeights,
    score: Callable[[Handover], TokenScores],
) -> TokenScores:
    pairs = zip(calls, gradients, strict=True)
    told = [replace(call, gradient=gradient) for call, gradient in pairs]
    return score(_checked(told, readout))


def _each_backward(
    question: Question, total: Tensor, outputs: Sequence[Tensor], stream: Sequence[Tensor]
) -> Iterator[tuple[Sequence[Tensor], QueryWeights]]:
    """The gradient on each output with the readout: of all inputs, or of one target at a time."""
    if not question.is_shared:
        found = torch.autograd.grad(total, [*outputs, *stream], materialize_grads=True)
        yield found[: len(outputs)], readout_from(question, *found[len(outputs) :])
        return
    (above,) = torch.autograd.grad(total, stream, retain_graph=True)
    for own in share_of_each(above, question.targets):
        gradients = torch.autograd.grad(
            stream[0], outputs, own, retain_graph=True, materialize_grads=True
        )
        yield gradients, shares(own)[:, : len(question.inputs.tokens[0])]


def _planned(question: Question) -> AbstractContextManager[None]:
    """Attention that a GPU plans for, where inputs of this shape come again and again."""
    shape = (len(question.inputs), len(question.inputs.tokens[0]))
    seen = _seen.setdefault(question.subject.model, Counter())
    seen[shape] += 1
    return planned_attention() if seen[shape] > SIGHTS else nullcontext()


@contextmanager
def _handing(
    subject: OpenModel,
    sites: Collection[Site],
    *,
    gradients: bool,
    met: Met | None = None,
    whole: bool = False,
) -> Iterator[HandingTap]:
    if not whole and subject.model not in _slices:
        _slices[subject.model] = _slices_agree(subject)
    with evaluation_mode(subject.model):  # before its modules are looked at
        known = anatomy(subject.model)
        tap = HandingTap(subject.model, known.owners, sites, gradients=gradients, met=met)
        name = known.with_few_masks
        with opened_by(
            tap, known, name if whole or not _slices[subject.model] else name_of_sliced(name)
        ):
            yield tap


def _slices_agree(subject: OpenModel) -> bool:
    """Whether a model takes masks made by rows for its own, tried on a short input."""
    inputs = sample_inputs(subject)
    with _handing(subject, subject.sites, gradients=False, whole=True):
        expected = subject.forward(inputs)
    _slices[subject.model] = True
    try:
        with _handing(subject, subject.sites, gradients=False) as tap, everywhere():
            found = subject.forward(inputs)
        fits = all(_rows_are_of_map(call, call.queries) for call in tap.calls)
    except (*OWN_FAILURES, AttlasError):
        return False
    finally:
        del _slices[subject.model]
    return fits and distance(found, expected) <= rounding(found)


def _checked(calls: Sequence[HandedCall], readout: QueryWeights) -> Handover:
    for call in calls:
        if not call.queries == call.keys == readout.shape[1]:
            raise UnsupportedModelError(
                f"the attention at {call.site.name} is of {call.queries} positions over "
                f"{call.keys}, not of the {readout.shape[1]} tokens of the input"
            )
    wide = torch.promote_types(calls[0].streams[0].dtype, readout.dtype)
    return Handover(calls, readout.to(wide))


def is_for_rows(question: Question, sites: Sequence[Site]) -> bool:
    """Whether a question is to be answered by rows: its maps are large, and nobody asks for them.

    It needs one stack of attention, whose rows were seen to be those of its maps.
    """
    subject, inputs = question.subject, question.inputs
    if question.maps or largest_map(inputs, sites) <= LONG:
        return False
    if inputs.picture is not None or inputs.prefix is not None or is_tapped(subject.model):
        return False
    if subject.stages(inputs) is not None:
        return False
    if subject.model not in _agrees:
        _agrees[subject.model] = rows_agree(subject)
    return _agrees[subject.model]


def rows_agree(subject: OpenModel) -> bool:
    """Whether rows computed again are those of the whole maps, tried on a short input."""
    if subject.merges_streams or len({site.kind for site in subject.sites}) > 1:
        return False
    if anatomy(subject.model).has_second_road:
        return False
    inputs = sample_inputs(subject)
    count = len(inputs.tokens[0])
    try:
        with subject.tap():
            expected = subject.forward(inputs)
        with _handing(subject, subject.sites, gradients=False) as tap:
            found = subject.forward(inputs)
            fits = all(_rows_are_of_map(call, count) for call in tap.calls)
    except OWN_FAILURES:
        return False
    return fits and distance(found, expected) <= rounding(found)


@torch.no_grad()
def _rows_are_of_map(call: HandedCall, count: int) -> bool:
    """Whether single rows of a call are those of its map, and its output its values mixed by it."""
    output, weights = call.spelled_out()
    if weights.shape[2:] != (count, count):
        return False
    rows = torch.zeros_like(weights)
    for row in range(count):
        for part in call.slices(range(row, row + 1)):
            rows[:, :, part.rows, part.keys] = part.weights
    tolerance = TOLERANCE.get(weights.dtype, 1e-2)
    mixed = mix(weights, call.streams[2])
    return torch.allclose(rows, weights, tolerance, tolerance) and (
        mixed.shape == output.shape and torch.allclose(mixed, output, tolerance, tolerance)
    )
