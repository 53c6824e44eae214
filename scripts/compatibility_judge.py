"""The comparisons of the survey: a model that was opened against the same model on eager."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import torch
from compatibility_exceptions import CUTS_GRADIENTS, EXCEPTIONS, RETURNED, SOFTMAXES_BESIDES
from compatibility_maps import (
    WrongError,
    as_it_is,
    compare_maps,
    flatten,
    has_shape,
    is_returned,
    maps,
    require,
)
from compatibility_models import VOCABULARY
from compatibility_page import OPENED, Row
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attlas.errors import UnsupportedModelError
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap import edits
from attlas.models.tap.call import Call
from attlas.models.tap.opening import tap

TOLERANCE, EXACT = 1e-6, 1e-11  # in single and in double precision
CHANGED = 1e-5
HUGE = 1e9  # larger outputs stand for what is masked
MASKED = -1e4  # so do lower scores
PREDICTIONS = (
    "logits",
    "start_logits",
    "end_logits",
    "question_answering_score",
    "projected_states",
)
FUSED = (functional.scaled_dot_product_attention, functional.multi_head_attention_forward)
Result = TypeVar("Result")
_SOFTMAX = (torch.softmax, functional.softmax, Tensor.softmax)


class SoftmaxCount(TorchFunctionMode):
    """Counts what could be attention: a softmax of three or more axes, or fused attention.

    A softmax over the vocabulary is a prediction; one over a single element is a constant.
    """

    def __init__(self) -> None:
        super().__init__()
        self.softmaxes = 0
        self.over_several = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        fused = func in FUSED
        if fused or (func in _SOFTMAX and _could_attend(args[0])):
            self.softmaxes += 1
            self.over_several |= fused or args[0].shape[-1] > 1
        return result


class EvenSoftmax(TorchFunctionMode):
    """Attention by its definition without a tap: every softmax is even over what it can see."""

    met_fused = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.met_fused |= func in FUSED
        if func not in _SOFTMAX or not _could_attend(args[0]):
            return result
        visible = (args[0] > MASKED).to(result.dtype)
        return visible / visible.sum(-1, keepdim=True).clamp_min(1)


def _could_attend(scores: Tensor) -> bool:
    return scores.ndim >= 3 and scores.shape[-1] != VOCABULARY


@dataclass(frozen=True, eq=False)
class Trial:
    """A model with its input; runs it with or without eager attention.

    What it computes is what eager computes, or, `as_found`, what it computed before.
    """

    model: Any
    inputs: dict[str, Any]
    as_found: bool = False

    @property
    def tolerance(self) -> float:
        """How far numbers that should be equal may be apart, as a share of the largest."""
        return EXACT if self.model.dtype == torch.float64 else TOLERANCE

    def more_exact(self) -> Trial:
        """The same in double precision, with experts that know it, and showing hidden states."""
        model = deepcopy(self.model).double()
        for config in internals.configurations(model):
            config._experts_implementation_internal = "eager"
        given = {
            name: each.double() if isinstance(each, Tensor) and each.is_floating_point() else each
            for name, each in self.inputs.items()
        }
        try:
            trial = Trial(model, {**given, "output_hidden_states": True}, self.as_found)
            trial.output()
        except TypeError:  # it shows none
            return Trial(model, given, self.as_found)
        return trial

    @property
    def rows(self) -> int:
        """How many texts or pictures the input holds."""
        return next(int(each.shape[0]) for each in flatten(list(self.inputs.values())))

    def run(self, **options: Any) -> Any:
        torch.manual_seed(0)
        return self.model(**self.inputs, **options)

    def output(self, **options: Any) -> Any:
        with torch.no_grad():
            return self.run(**options)

    def expected(self) -> list[Tensor]:
        return values(self.output() if self.as_found else self.eager())

    def eager(self, **options: Any) -> Any:
        with internals.implementation(internals.configurations(self.model), "eager"):
            return self.output(**options)


def judge(kind: str, head: str, trial: Trial) -> Row:
    """The row for a model that runs."""
    row = Row(kind, head, "wrong", {})
    with SoftmaxCount() as counted:
        trial.eager()
    try:
        if not counted.over_several and not EXCEPTIONS.get(kind, {}).get("softmax_by_hand"):
            return replace(row, verdict="no softmax attention")
        return compare(row, trial, counted.softmaxes)
    except UnsupportedModelError as error:
        return replace(row, verdict="refused", note=first_line(str(error)))
    except TimeoutError:
        raise
    except Exception as error:
        return replace(row, note=f"{type(error).__name__}: {first_line(str(error))}")


def compare(row: Row, trial: Trial, softmaxes: int) -> Row:
    """The row of a model that can be opened; raises if a comparison fails."""
    before = values(trial.output())
    with tap(trial.model) as seen:
        opened = values(trial.output())
    require(seen.calls, "nothing was seen")
    trial = replace(trial, as_found=distance(opened, trial.expected()) > CHANGED * size(opened))
    if trial.as_found:
        exactly(compare_with_found, trial)
    else:
        same(opened, trial.expected(), "the opened model against eager", trial)
    same(values(trial.output()), before, "the closed model against itself before", trial)
    owners = {owner.path: owner for owner in anatomy(trial.model).owners}
    roads = {path: owner.road for path, owner in owners.items()}
    returned = {} if trial.as_found else maps(trial.eager)
    # Where we lay out pieces as a map, transformers may return windows or blocks.
    whole = [
        call for call in seen.calls if roads[call.path] != "pieces" or is_returned(call, returned)
    ]
    if len(whole) < len(seen.calls):
        returned = {name: each for name, each in returned.items() if has_shape(each, whole)}
    compared = compare_maps(whole, returned, RETURNED.get(row.kind, as_it_is))
    merged = [call for call in whole if owners[call.path].is_merged and call.site.kind == "cross"]
    besides = SOFTMAXES_BESIDES.get(row.kind, {}).get(row.head, 0)
    expected_softmaxes = softmaxes + len(merged)
    complete = len(whole) in (compared, expected_softmaxes, expected_softmaxes - besides)
    complete = complete or len(seen.calls) == expected_softmaxes  # one softmax in each window
    require(complete, f"{len(whole)} seen of {compared} maps and {softmaxes} softmaxes")
    counts = exactly(compare_edits, trial)
    if counts:
        exactly(partial(compare_gradients, cut=row.head in CUTS_GRADIENTS), trial)
    second = any(roads[call.path] != "interface" for call in seen.calls)
    sites = dict(Counter(call.site.kind for call in seen.calls))
    told = list(notes(row, seen.calls, len(roads), trial))
    note = "; ".join(told if counts else [*told, "this input's output does not hang on it"])
    return replace(row, verdict=OPENED[second], sites=sites, compared=compared, note=note)


def notes(row: Row, calls: Sequence[Call], modules: int, trial: Trial) -> Iterator[str]:
    """Notes for readers of the table."""
    for why in (EXCEPTIONS.get(row.kind, {}).get("note"), CUTS_GRADIENTS.get(row.head)):
        if why is not None:
            yield why
    if trial.as_found:
        yield "eager computes another function; compared with the model as it was found"
    if any(call.weights.shape[0] != trial.rows for call in calls):
        yield "windows beside the batch"
    idle = modules - len({call.path for call in calls})
    if idle:
        yield f"{idle} modules did not run"


def values(output: Any) -> list[Tensor]:
    """The output to compare: the logits, or all but the loss if there are none or more is shown."""
    shows = any(name.endswith("hidden_states") for name in output)
    names = () if shows else PREDICTIONS
    found = [each for name in names for each in flatten(output.get(name))]
    named = [v for k, v in output.items() if k != "loss" and not k.endswith("attentions")]
    return found or [each for each in flatten(named) if each.is_floating_point()]


def distance(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """The largest difference, ignoring equal infinities; infinite if the shapes differ."""
    pairs = list(zip(one, other, strict=True))
    if any(a.shape != b.shape for a, b in pairs):
        return torch.inf
    return max(float((a - b).abs().nan_to_num(0.0 if a.equal(b) else 9.0).max()) for a, b in pairs)


def size(outputs: Sequence[Tensor]) -> float:
    """The largest finite number, at least one."""
    return max(1.0, *(float(each[each.isfinite()].abs().max()) for each in outputs))


def near(one: Sequence[Tensor], other: Sequence[Tensor], what: str, trial: Trial) -> None:
    """Require equality up to rounding."""
    apart = distance(one, other)
    require(apart <= trial.tolerance * size(other), f"{what}: {apart:.1e} apart")


def same(one: Sequence[Tensor], other: Sequence[Tensor], what: str, trial: Trial) -> None:
    """Require equality, or the tolerance if eager itself does not repeat its output."""
    require(all(each.isfinite().any() for each in one), f"{what}: nothing finite")
    if all(a.equal(b) for a, b in zip(one, other, strict=True)):
        return
    apart = distance(one, other)
    repeats = distance(trial.expected(), trial.expected()) == 0
    require(apart <= TOLERANCE and not repeats, f"{what}: {apart:.1e} apart")


def compare_with_found(trial: Trial) -> None:
    """The opened model must compute what it computed before it was opened."""
    found = values(trial.output())
    with tap(trial.model):
        opened = values(trial.output())
    near(opened, found, "the opened model against the model as it was found", trial)


def compare_edits(trial: Trial) -> bool:
    """An empty edit must keep the output, and uniform attention change it if attention counts.

    Returns whether it counts: a text may have one visible key, or be read at such a place. The
    judge's own even softmax says so, not the tap.
    """
    expected = trial.expected()
    with tap(trial.model, [edits.apply(torch.clone)]):
        near(values(trial.output()), expected, "an empty edit against none", trial)
    try:
        with tap(trial.model, [edits.uniform()]):
            counts = distance(values(trial.output()), expected) > CHANGED
    except IndexError:  # ESMFold cannot score what it then makes
        return True
    if not counts:
        with EvenSoftmax() as even:
            apart = distance(trial.expected(), expected)
        unmoved = apart <= CHANGED and not even.met_fused
        require(unmoved, "uniform attention does not change the output")
    return counts


def compare_gradients(trial: Trial, cut: bool) -> None:
    """Gradients must reach the sites; where the model cuts them itself, some or none."""
    with evaluation_mode(trial.model), tap(trial.model, gradients=True) as seen:
        total = sum(each[each.abs() < HUGE].square().sum() for each in values(trial.run()))
        if cut and not total.requires_grad:
            return
        found = torch.autograd.grad(total, seen.weights, allow_unused=True)
    reached = [each for each in found if each is not None]
    require(all(each.isfinite().all() for each in reached), "gradients are not finite")
    require(any(bool(each.any()) for each in reached), "no gradient reaches any site")
    for call, gradient in zip(seen.calls, found, strict=True):
        if gradient is None and not cut:
            site = edits.uniform().at(kind=call.site.kind, layer=call.site.layer)
            with tap(trial.model, [site]):
                edited = values(trial.output())
            moved = distance(edited, trial.expected())
            require(moved <= TOLERANCE, f"no gradient at {call.site.name}, which counts")


def exactly(check: Callable[[Trial], Result], trial: Trial) -> Result:
    """What a check returns; where it fails, because rounding or a saturated head may be to blame,
    what it returns in double precision with the hidden states as outputs.
    """
    try:
        return check(trial)
    except WrongError as failed:
        try:
            return check(trial.more_exact())
        except RuntimeError:  # the model knows no double precision
            raise failed from None


def first_line(text: str) -> str:
    """The beginning of an error's message, short enough for a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines).split(". ")[0][:200].replace("|", "/") if lines else "no message"


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise an error if the block takes more processor time, however busy the machine is."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"took over {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
