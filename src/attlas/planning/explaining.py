"""The plans of `explain`, `explain_to` and `explain_generation`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from attlas.data.example import Example
from attlas.data.read_examples import ReadData
from attlas.data.sources import read_rows
from attlas.errors import UsageError
from attlas.explaining.explanations import MOST_MAP_BYTES
from attlas.explaining.footprint import map_sites, takes_slices
from attlas.explaining.method_call import MethodCall, methods_to_try, requests_for
from attlas.explaining.plan import Plan, size
from attlas.explaining.score_places import check_out
from attlas.explaining.streams import shared_request
from attlas.models.asking.map_selection import map_bytes
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.encoding.text_inputs import are_pairs, texts_of
from attlas.models.subject import Subject, check_subject
from attlas.planning.costs import SAMPLED, Expense, make_plan, pose_sample, speed_of

LICENCE = 40  # changed texts for each token, by which a licence is given


def plan_explain(given: Mapping[str, Any], options: Mapping[str, Any]) -> Plan:
    """What `explain` would take."""
    subject, text = given["subject"], given["text"]
    check_subject(subject, "explain")
    if isinstance(text, Iterator):
        raise UsageError("a plan is made of known texts: give a list, not an iterator")
    texts, alone = texts_of(text)
    if subject.task is None and are_pairs(texts):
        subject = subject.comparing()
    asked = {name: given[name] for name in ("target", "contrast", "position", "prefix")}
    base = Request(chat=given["chat"], truncate=given["truncate"])
    requests = requests_for(None if alone else len(texts), asked, base)
    known = [each.text if isinstance(each, Example) else each for each in texts]
    return _plan("explain", subject, known, requests, given, options)


def plan_explain_to(given: Mapping[str, Any], options: Mapping[str, Any]) -> Plan:
    """What `explain_to` would take."""
    check_subject(given["subject"], "explain_to")
    check_out(given["out"])
    asked = ("target", "contrast", "position", "prefix", "chat", "truncate")
    request = shared_request({name: given[name] for name in asked})
    data = given["data"].examples if isinstance(given["data"], ReadData) else given["data"]
    columns = ("text", "pair", "label", "split", "count", "seed")
    rows = read_rows(data, **{name: given[name] for name in columns})
    step = max(1, len(rows) // SAMPLED)
    drawn = [row.example for row in islice(rows, 0, None, step)]
    texts = [each.text for each in drawn if each is not None]
    found = _plan(
        "explain_to",
        given["subject"],
        texts,
        [request] * len(texts),
        {**given, "maps": False},
        options,
        len(rows) / max(len(drawn), 1),
    )
    return replace(found, notes=(*found.notes, *_left_out(drawn)))


def _left_out(drawn: Sequence[Example | None]) -> list[str]:
    empty = sum(each is None for each in drawn)
    return [f"{empty} of {len(drawn)} rows that were looked at have no text"] if empty else []


def _plan(
    verb: str,
    subject: Subject,
    texts: Sequence[Any],
    requests: Sequence[Request],
    given: Mapping[str, Any],
    options: Mapping[str, Any],
    often: float | int = 1.0,
) -> Plan:
    method = methods_to_try(given["method"], maps=given["maps"])[0]
    for request in requests:
        MethodCall(method, request, options, given["maps"], given["licence"])
    questions, scale = pose_sample(subject, texts, requests, fills=method.fills)
    scale *= often
    if questions and not questions[0].asked[0].request.is_open:
        _ = questions[0].rows([0]).targets  # a wrong target is told
    kept, notes = _maps(questions, method, given["maps"], scale)
    asked = [replace(each, maps=kept) for each in questions]
    if any(takes_slices(each, method) for each in asked):
        notes.append("long texts: attention in slices, no map is made")
    speed = speed_of(subject)
    of_method = sum((speed.of_method(each, method, options) for each in asked), Expense())
    costs = {method.name: of_method.times(scale)}
    if given["licence"]:
        rows = [speed.in_batches(each, LICENCE * len(each.inputs.tokens[0])) for each in asked]
        costs["licences"] = sum(rows, Expense()).times(scale)
    what = f"{verb} by {method.name}"
    return make_plan(what, subject, asked, costs, method, scale=scale, notes=notes)


def _maps(
    questions: Sequence[Question], method: Any, asked: bool | None, scale: float | int
) -> tuple[bool, list[str]]:
    """Whether maps are kept, as `explain` decides it, and what to say of that."""
    each = [len(one) * map_bytes(one.inputs, map_sites(method, one)) for one in questions]
    total = scale * sum(each)
    if asked is not None or total < MOST_MAP_BYTES:
        return bool(asked is None or asked), []
    return False, [f"maps are left out: they take {size(total)} (maps=True, --maps keeps them)"]


def plan_generation(given: Mapping[str, Any], options: Mapping[str, Any]) -> Plan:
    """What `explain_generation` would take if the model writes all it may."""
    subject = given["subject"]
    check_subject(subject, "explain_generation")
    if not subject.predicts_next:
        task = subject.task.name if subject.task else "no head"
        raise UsageError(
            f"explain_generation needs a model that writes text; {subject.name} is for {task}"
        )
    most = given["max_new_tokens"]
    if most < 1:
        raise UsageError(f"max_new_tokens must be at least 1, not {most}")
    texts, _ = texts_of(given["text"])
    method = methods_to_try(given["method"], maps=None)[0]
    method.check_options(options)
    request = Request(chat=given["chat"], truncate=given["truncate"])
    known = [each.text if isinstance(each, Example) else each for each in texts]
    questions, scale = pose_sample(subject, known, [request] * len(known), fills=False)
    alone = [replace(one.rows([row]), maps=False) for one in questions for row in range(len(one))]
    speed = speed_of(subject)
    back = not {"gradients", "embeddings"}.isdisjoint(method.needs)
    writing = explaining = Expense()
    for each in alone:
        tokens = len(each.inputs.tokens[0]) + most
        writing += speed.cost(tokens, 1, most)
        once = speed.of_method(each, method, options)
        often = 1 if method.many_targets and not back else most
        explaining += once.times(often * tokens / max(len(each.inputs.tokens[0]), 1))
    costs = {"writing": writing.times(scale), method.name: explaining.times(scale)}
    notes = [f"counted as if {most} tokens were written after each text"]
    what = f"explain_generation by {method.name}"
    return make_plan(what, subject, alone, costs, method, scale=scale, notes=notes)
