"""The comparisons of the survey: a model that was opened against the same model on eager."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from compatibility_exceptions import EXCEPTIONS
from compatibility_models import VOCABULARY
from compatibility_page import OPENED, Row
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from attlas.errors import UnsupportedModelError
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import anatomy
from attlas.models.tap import edits
from attlas.models.tap.call import Call
from attlas.models.tap.opening import tap

TOLERANCE = 1e-6
_SOFTMAX = (torch.softmax, functional.softmax, Tensor.softmax)


class WrongError(Exception):
    """A model was opened, but a comparison failed."""


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
        fused = func in (
            functional.scaled_dot_product_attention,
            functional.multi_head_attention_forward,
        )
        if fused or (func in _SOFTMAX and _could_attend(args[0])):
            self.softmaxes += 1
            self.over_several |= fused or args[0].shape[-1] > 1
        return result


def _could_attend(scores: Tensor) -> bool:
    return scores.ndim >= 3 and scores.shape[-1] != VOCABULARY


@dataclass(frozen=True, eq=False)
class Trial:
    """A model with its input; runs it with or without eager attention."""

    model: Any
    inputs: dict[str, Any]

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
    before, expected = values(trial.output()), values(trial.eager())
    with tap(trial.model) as seen:
        opened = values(trial.output())
    require(seen.calls, "nothing was seen")
    same(opened, expected, "the opened model against eager", trial)
    same(values(trial.output()), before, "the closed model against itself before", trial)
    owners = {owner.path: owner for owner in anatomy(trial.model).owners}
    roads = {path: owner.road for path, owner in owners.items()}
    whole = [call for call in seen.calls if roads[call.path] != "pieces"]
    returned = maps(trial)
    if len(whole) < len(seen.calls):  # transformers returns windows or blocks where we lay out maps
        returned = {name: each for name, each in returned.items() if has_shape(each, whole)}
    compared = compare_maps(whole, returned)
    merged = [call for call in whole if owners[call.path].is_merged and call.site.kind == "cross"]
    complete = len(whole) in (compared, softmaxes + len(merged))
    require(complete, f"{len(whole)} seen of {compared} maps and {softmaxes} softmaxes")
    compare_edits(trial, expected)
    compare_gradients(trial)
    second = any(roads[call.path] != "interface" for call in seen.calls)
    sites = dict(Counter(call.site.kind for call in seen.calls))
    note = "; ".join(notes(row.kind, seen.calls, len(roads), trial.rows))
    return replace(row, verdict=OPENED[second], sites=sites, compared=compared, note=note)


def notes(kind: str, calls: Sequence[Call], modules: int, rows: int) -> Iterator[str]:
    """Notes for readers of the table."""
    if "note" in EXCEPTIONS.get(kind, {}):
        yield EXCEPTIONS[kind]["note"]
    if any(call.weights.shape[0] != rows for call in calls):
        yield "windows beside the batch"
    idle = modules - len({call.path for call in calls})
    if idle:
        yield f"{idle} modules did not run"


def values(output: Any) -> list[Tensor]:
    """The output to compare: the logits, or else the first tensor."""
    names = ("logits", "start_logits", "end_logits", "question_answering_score")
    found = [output[name] for name in names if output.get(name) is not None]
    return found or [next(flatten(list(output.values())))]


def distance(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    """The largest difference, ignoring equal infinities."""
    pairs = zip(one, other, strict=True)
    return max(float((a - b).abs().nan_to_num(0.0 if a.equal(b) else 9.0).max()) for a, b in pairs)


def same(one: Sequence[Tensor], other: Sequence[Tensor], what: str, trial: Trial) -> None:
    """Require equality, or the tolerance if eager itself does not repeat its output."""
    require(all(each.isfinite().any() for each in one), f"{what}: nothing finite")
    if all(a.equal(b) for a, b in zip(one, other, strict=True)):
        return
    apart = distance(one, other)
    repeats = distance(values(trial.eager()), values(trial.eager())) == 0
    require(apart <= TOLERANCE and not repeats, f"{what}: {apart:.1e} apart")


def maps(trial: Trial) -> dict[str, list[Tensor]]:
    """The attention that transformers itself returns on eager, by its name."""
    try:
        output = trial.eager(output_attentions=True)
    except (TypeError, NotImplementedError):
        return {}
    found: dict[str, list[Tensor]] = {}
    for name, value in output.items():
        if name.endswith("attentions"):
            found[name] = [windows_first(each) for each in flatten(value) if is_attention(each)]
    return {name: each for name, each in found.items() if each}


def is_attention(given: Tensor) -> bool:
    """Whether rows are shares that sum to at most one; scores and linear states are not."""
    return given.ndim >= 3 and bool((given >= 0).all() and (given.sum(-1) <= 1 + 1e-4).all())


def windows_first(given: Tensor) -> Tensor:
    """`[batch, head, window, query, key]` with the windows joined to the batch, as Swin does."""
    return given.transpose(1, 2).flatten(0, 1) if given.ndim == 5 else given


def flatten(value: Any) -> Iterator[Tensor]:
    """The tensors in tuples of tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from flatten(each)


def compare_maps(calls: Sequence[Call], given: dict[str, list[Tensor]]) -> int:
    """The number of maps that agree; every returned map must have been seen, in the same order."""
    left = list(calls)
    for name in sorted(given, key=len, reverse=True):  # plain "attentions" takes what is left
        kind = name.removesuffix("attentions").rstrip("_")
        mine = [call for call in left if call.site.kind == kind] or left
        for call, weights in match(name, list(mine), given[name]):
            left.remove(call)
            apart = float((call.weights - weights).abs().max())
            require(apart <= TOLERANCE, f"{name}: {apart:.1e} apart")
    return sum(len(each) for each in given.values())


def has_shape(given: Sequence[Tensor], calls: Sequence[Call]) -> bool:
    """Whether the first of these maps has the shape of one that was seen."""
    return any(call.weights.shape == given[0].shape for call in calls)


def match(name: str, calls: Sequence[Call], given: Sequence[Tensor]) -> list[tuple[Call, Tensor]]:
    """Pairs of a call and a returned map; if there are more calls, the nearest ones."""
    if len(calls) == len(given):
        pairs = list(zip(calls, given, strict=True))
    else:
        pairs, waiting = [], list(calls)
        for weights in given:
            alike = [call for call in waiting if call.weights.shape == weights.shape]
            require(alike, f"{len(calls)} {name} seen of {len(given)}")
            found = min(alike, key=lambda call: float((call.weights - weights).abs().max()))
            del waiting[: waiting.index(found) + 1]
            pairs.append((found, weights))
    for call, weights in pairs:
        shapes = f"{tuple(call.weights.shape)} seen for {tuple(weights.shape)}"
        require(call.weights.shape == weights.shape, f"{name}: {shapes}")
    return pairs


def compare_edits(trial: Trial, expected: Sequence[Tensor]) -> None:
    """An empty edit must keep the output, and uniform attention must change it."""
    with tap(trial.model, [edits.apply(torch.clone)]):
        apart = distance(values(trial.output()), expected)
    size = max(1.0, *(float(each[each.isfinite()].abs().max()) for each in expected))
    require(apart <= TOLERANCE * size, f"an empty edit moves the output by {apart:.1e}")
    with tap(trial.model, [edits.uniform()]):
        apart = distance(values(trial.output()), expected)
    require(apart > 1e-5, "uniform attention does not change the output")


def compare_gradients(trial: Trial) -> None:
    """Gradients must reach the sites."""
    for parameter in trial.model.parameters():
        parameter.requires_grad_(False)
    with tap(trial.model, gradients=True) as seen:
        total = sum(each[each.isfinite()].square().sum() for each in values(trial.run()))
        found = torch.autograd.grad(total, seen.weights, allow_unused=True)
    reached = [each for each in found if each is not None]
    require(all(each.isfinite().all() for each in reached), "gradients are not finite")
    require(any(bool(each.any()) for each in reached), "no gradient reaches any site")
    for call, gradient in zip(seen.calls, found, strict=True):
        if gradient is None:
            site = edits.uniform().at(kind=call.site.kind, layer=call.site.layer)
            with tap(trial.model, [site]):
                edited = values(trial.output())
            moved = distance(edited, values(trial.eager()))
            require(moved <= TOLERANCE, f"no gradient at {call.site.name}, which counts")


def require(condition: Any, otherwise: str) -> None:
    """Raise an error with this text unless the condition holds."""
    if not condition:
        raise WrongError(otherwise)


def first_line(text: str) -> str:
    """The beginning of an error's message, short enough for a table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines).split(". ")[0][:200].replace("|", "/") if lines else "no message"


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise an error if the block takes longer."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"took over {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
