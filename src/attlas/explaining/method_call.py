"""A method as it is called for every text, and the records that its results carry."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor

from attlas.catalogue import BEST_METHODS
from attlas.data.conversations import is_conversation, without_pictures
from attlas.errors import ModelError, UnsupportedModelError, UsageError
from attlas.methods import METHODS, Method, Scored
from attlas.models.asking.filling import shown_tokens, unfilled
from attlas.models.asking.map_selection import maps_of
from attlas.models.asking.memory import arrays_of, brought, may_wait
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Asked, Question
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.request import Request
from attlas.models.encoding.sounds import is_sound
from attlas.models.encoding.target import Target
from attlas.models.encoding.token_ids import is_number
from attlas.results import Explanation, Site, TargetRecord
from attlas.results.support.origin import ENCODED, SAMPLES, Origin
from attlas.results.support.sums import find_sinks, sink_notes
from attlas.version import __version__

Result = TypeVar("Result")


@dataclass(frozen=True)
class MethodCall:
    """A method with its options, what is asked about each text, and what comes with the scores."""

    method: Method
    request: Request
    options: Mapping[str, Any]
    maps: bool | None = None  # None: if they are small
    licence: bool = False  # whether each explanation comes with its licence
    notes: tuple[str, ...] = ()  # what every result says about the call

    def __post_init__(self) -> None:
        name = self.method.name
        self.method.check_options(self.options)
        if self.request.contrast is not None and self.method.of is None:
            raise UsageError(f"{name} does not depend on the target, so it takes no contrast")
        if self.maps and self.method.maps is None and not self.options.get("full"):
            raise UsageError(f"{name} makes no maps, so maps=True is not possible")


def requests_for(count: int | None, asked: Mapping[str, Any], request: Request) -> list[Request]:
    """The request of each of so many texts; None is one text alone.

    With several texts, a list, Series or array holds one value for each of them.
    """
    shared: dict[str, Any] = {}
    columns: dict[str, list[Any]] = {}
    for name, value in asked.items():
        given = value.tolist() if getattr(value, "ndim", 0) == 1 else value
        if count is None or not isinstance(given, list):
            shared[name] = _as_saved(name, given)
        elif len(given) == count:
            columns[name] = [_as_saved(name, each) for each in given]
        else:
            raise UsageError(f"{count} texts but {len(given)} in {name}: give one for each")
    common = replace(request, **shared)
    if not columns:
        return [common] * (1 if count is None else count)
    rows = zip(*columns.values(), strict=True)
    return [replace(common, **dict(zip(columns, row, strict=True))) for row in rows]


def _as_saved(name: str, given: Any) -> Any:
    """A value of a request; a saved target may be given as its record."""
    return Target.from_dict(given) if name == "target" and isinstance(given, Mapping) else given


def first_that_runs(
    method: str | None, run: Callable[[Method, tuple[str, ...]], Result], *, maps: bool | None
) -> Result:
    """Run the method of this name; without a name, the best that runs on the model.

    A note says why a better one did not run. If maps are wanted, only methods that make some count.
    """
    methods = methods_to_try(method, maps=maps)
    notes: tuple[str, ...] = ()
    for better, next_best in pairwise(methods):
        try:
            return run(better, notes)
        except UnsupportedModelError as error:
            why = f"{better.name} does not run on this model ({error})"
            notes = (*notes, f"{why}, so {next_best.name} explains it")
    return run(methods[-1], notes)


def methods_to_try(method: str | None, *, maps: bool | None) -> list[Method]:
    """The method of this name; without a name, the best ones, the very best first."""
    if method is not None:
        return [METHODS[method]]
    best = [METHODS[name] for name in BEST_METHODS]
    return [each for each in best if each.maps is not None] if maps else best


def memory_message(method: Method, question: Question) -> str:
    """The error message for a single text that does not fit into memory."""
    count, device = len(question.inputs.tokens[0]), question.subject.device
    return (
        f"{method.name} of one text of {count} tokens does not fit on {device}; "
        "shorten the text, or load the model in half precision (dtype)"
    )


def target_record(asked: Asked, method: Method) -> TargetRecord:
    """What was asked of one row once the model has run, as a result stores it."""
    of = method.of or "probability"
    target, scores = asked.target, asked.scores
    assert target is not None and scores is not None
    return TargetRecord(
        target.name,
        target.quantity(of),
        scores[of],
        target.contrast_name,
        target.position,
    )


def origin(call: MethodCall, subject: OpenModel, asked: Mapping[str, Any], verb: str) -> Origin:
    """How a result was made: everything that is needed to compute it again."""
    method, request = call.method, call.request
    arguments = {
        **asked,
        "target": _as_json(request.target),
        "contrast": _as_json(request.contrast),
        "position": _as_json(request.position),
        "prefix": request.prefix,
        "chat": request.chat or None,
        "truncate": request.truncate or None,
        "maps": call.maps,
        "licence": call.licence or None,
    }
    return Origin(
        model=subject.name,
        task=subject.task.name if subject.task else "",
        method=method.name,
        signed=method.signed,
        paper=method.paper,
        reading=method.reading,
        options={**method.options, **call.options},
        asked={name: value for name, value in arguments.items() if value is not None},
        versions={
            "attlas": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        verb=verb,
        takes_sides=method.takes_sides,
    )


def _as_json(argument: Any) -> Any:
    """An argument as JSON that `explain` accepts again."""
    if isinstance(argument, Target):
        return argument.to_dict()
    if isinstance(argument, (list, tuple)):
        return [_as_json(each) for each in argument]
    return int(argument) if is_number(argument) else argument


def plain_text(text: Any) -> Any:
    """A text as a file can store it; words become a list of one text, pictures their type."""
    if isinstance(text, list) and text and isinstance(text[0], str):
        return [text]
    if is_conversation(text):
        return without_pictures(text)
    if isinstance(text, Mapping):
        return ENCODED
    if is_sound(text):
        return SAMPLES
    if isinstance(text, tuple):
        # A picture may stand before or behind its text; the record has the text last.
        parts = sorted(text, key=lambda each: isinstance(each, str))
        return tuple(plain_text(each) for each in parts)
    return text if isinstance(text, (str, tuple, list, Mapping)) else type(text).__name__


def on_this_machine(scored: Scored) -> Scored:
    """Scores and maps in memory that numpy reads, moved at once for all rows.

    The maps of one row may wait where they are until somebody looks at them.
    """
    maps = [each for _, each in scored.maps]
    if len(scored.scores) == 1 and may_wait(maps):
        return replace(scored, scores=brought([scored.scores])[0])
    scores, *maps = brought([scored.scores, *maps])
    sites = [site for site, _ in scored.maps]
    return replace(scored, scores=scores, maps=list(zip(sites, maps, strict=True)))


def explanations_of(
    calls: Sequence[MethodCall], question: Question, scored: Scored, notes: Sequence[str]
) -> Iterator[tuple[int, Explanation]]:
    """The result for each row of a batch that was scored, with its place among the texts.

    The tokens that a row was filled up with are left out.
    """
    method, asked = calls[0].method, question.answered
    scores: NDArray[np.float32] = scored.scores.numpy()
    if not np.isfinite(scores).all():
        name = question.subject.name
        raise ModelError(f"{method.name} gave scores that are not finite for {name}")
    maps = scored.maps if question.maps else ()
    sites = [site for site, _ in maps]
    origins: dict[int, Origin] = {}  # texts of one call share all but the text
    for row, index in enumerate(question.order):
        tokens = shown_tokens(question.inputs, row)
        count = len(tokens)
        own = [each[row] for _, each in maps]
        inputs = unfilled(question.inputs, row) if own else question.inputs
        if own and count < len(question.inputs.tokens[row]):
            own = [_shown(question.inputs, inputs, *each) for each in zip(sites, own, strict=True)]
        call = calls[index]
        if id(call) not in origins:
            origins[id(call)] = origin(call, question.subject, {}, "explain")
        warned = scored.row_warnings[row] if scored.row_warnings else ""
        details = dict(scored.row_details[row]) if scored.row_details else {}
        sinks = () if method.signed else find_sinks(tokens, scores[row, :count])
        yield (
            index,
            Explanation(
                tokens,
                scores[row, :count],
                target_record(asked[row], method),
                origins[id(call)].about(plain_text(question.inputs.texts[row])),
                asked[row].prediction,
                (
                    *([warned] if warned else []),
                    *question.notes(row),
                    *scored.notes,
                    *(scored.row_notes[row] if scored.row_notes else ()),
                    *notes,
                    *sink_notes(tokens, sinks),
                ),
                maps_of(
                    inputs,
                    0,
                    sites,
                    arrays_of(own),
                    method.signed,
                    shows=scored.shows or method.name,
                )
                if own
                else None,
                question.pictures(row),
                {**details, **({"warning": warned} if warned else {})},
            ),
        )


def _shown(filled: Inputs, inputs: Inputs, site: Site, weights: Tensor) -> Tensor:
    """A map without what its row was filled up by: the one query of a pooling attention stays."""
    pairs = zip(filled.queries_and_keys(site.kind), inputs.queries_and_keys(site.kind), strict=True)
    rows, columns = (len(whole) - len(own) for whole, own in pairs)
    return weights[:, : weights.shape[1] - rows, : weights.shape[2] - columns]
