"""The plans of what tests explanations: judge, score, try_trial, audit and study."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from attlas.auditing.estimate import CHEAP_PASSES, EXPENSIVE_PASSES, UNSHARED, estimate
from attlas.auditing.plan import plan_audit
from attlas.auditing.texts import usable_texts
from attlas.data import texts
from attlas.data.read_examples import read_examples
from attlas.errors import UsageError
from attlas.explaining.plan import Plan
from attlas.judging.judge import judge_requests, judge_settings
from attlas.measures import sizes
from attlas.methods import METHODS
from attlas.models.encoding.request import Request
from attlas.models.load import load
from attlas.models.loading.devices import choose_device
from attlas.models.subject import check_subject
from attlas.planning.costs import Expense, make_plan, pose_sample, speed_of
from attlas.planning.explaining import LICENCE
from attlas.planning.heads import plan_curve, plan_effectiveness, plan_triggers
from attlas.removing.ceilings import CANDIDATES, WIDTH
from attlas.scoring.run import EXPENSIVE_SHARE, find_scored
from attlas.studies import STUDIES
from attlas.studies.attattr import SEED, check_tasks
from attlas.studies.support.run import PARTS
from attlas.trials import TRIALS

TRIED = 8  # inputs of a model of known truth, to see how long they are
COLUMNS = {"text": None, "pair": None, "label": None, "spans": None, "split": None, "count": None}


def plan_judge(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What `judge` would take."""
    subject = given["subject"]
    check_subject(subject, "judge")
    asked = (given[name] for name in ("measures", "removal", "shuffles", "seed"))
    settings = judge_settings(*asked)
    named = [given[name] for name in ("explanations", "text", "target", "marks")]
    requests = judge_requests(subject, *named)
    known = [each.text for each in requests]
    questions, scale = pose_sample(subject, known, [each.request for each in requests], fills=False)
    speed, removing = speed_of(subject), Expense()
    for each in questions:
        tokens = len(each.inputs.tokens[0])
        steps = len(sizes(tokens))
        rows = UNSHARED * 2 * (1 + settings.shuffles) * steps
        rows += 2 * (tokens + WIDTH * CANDIDATES * steps)
        removing += speed.in_batches(each, rows).times(len(settings.removal))
        removing += speed.in_batches(each, LICENCE * tokens)
    costs = {"removing tokens": removing.times(scale)}
    alone = [replace(each, maps=False) for each in questions]
    return make_plan("judge", subject, alone, costs, METHODS["leave_one_out"], scale=scale)


def plan_trial(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What `try_trial` would take."""
    subject, trial = given["subject"], TRIALS[given["trial"]]
    check_subject(subject, "try_trial")
    columns = {name: given[name] for name in COLUMNS}
    read = read_examples(given["data"], seed=given["seed"], **columns)
    request = Request(truncate=given["truncate"])
    usable = usable_texts(subject, read, request, given["seed"], "a trial", 1)
    known = [each.text for each in usable.examples]
    questions, scale = pose_sample(subject, known, [request] * len(known), fills=False)
    speed = speed_of(subject)
    passes = CHEAP_PASSES if trial.cost == "cheap" else EXPENSIVE_PASSES
    costs = {
        trial.name: sum((speed.in_batches(each, passes) for each in questions), Expense()).times(
            scale
        )
    }
    alone = [replace(each, maps=False) for each in questions]
    notes = [f"a {trial.cost} trial is taken to be {passes} passes of the model on a text"]
    method = METHODS["raw_attention"]
    return make_plan(trial.name, subject, alone, costs, method, scale=scale, notes=notes)


def plan_score(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What scoring methods on the models of known truth would take."""
    count = given["count"]
    benches, methods = find_scored(given["models"], given["methods"], count)
    plans = []
    for bench in benches:
        subject = load(bench.model)
        found = bench.inputs(subject, min(TRIED, count), given["seed"])
        known = [case.example.text for cases in found for case in cases]
        questions, _scale = pose_sample(subject, known, [Request()] * len(known), fills=False)
        speed, total = speed_of(subject), Expense()
        for method in methods:
            share = EXPENSIVE_SHARE if method.cost == "expensive" else 1
            own = sum((speed.of_method(each, method, {}) for each in questions), Expense())
            total += own.times(count / share / max(len(found), 1))
        alone = [replace(each, maps=False) for each in questions]
        scale = count / max(len(found), 1)
        costs = {bench.model: total}
        plans.append(
            make_plan("score", subject, alone, costs, METHODS["gradient_attention"], scale=scale)
        )
    return joined("score", f"{len(methods)} methods on {len(benches)} models", plans)


def plan_study(given: Mapping[str, Any], options: Mapping[str, Any]) -> Plan:
    """What a study would take: for attattr from its models, for others as it was measured."""
    chosen = STUDIES[given["name"]]
    settings = chosen.settings(options, quick=given["quick"])
    if chosen.name == "attattr" and settings["models"]:
        return _plan_attattr(settings, given["out"], given["device"])
    seconds = chosen.takes[0 if given["quick"] else 1]
    form, where = ("quick", "two cores") if given["quick"] else ("full", "one H200")
    shown = ", ".join(f"{name} {value}" for name, value in settings.items() if value is not None)
    kept = _kept_parts(given["out"], chosen.name)
    notes = [f"settings: {shown}", *([f"{kept} parts are finished already"] if kept else [])]
    if not given["quick"] and choose_device(given["device"]).type != "cuda":
        notes.append("without a GPU it takes many times as long")
    measured = f"the {form} form with its own settings, as a whole, on {where}"
    return Plan(
        verb=f"study {chosen.name}",
        model=chosen.paper,
        device=given["device"] or "the device chosen",
        texts=0,
        tokens=0,
        longest=0,
        passes=None,
        seconds=seconds,
        seconds_by_work={},
        peak=0,
        weights=0,
        measured=measured if seconds else "never: this form has not been timed",
        notes=tuple(notes),
    )


def _kept_parts(out: Any, name: str) -> int:
    """How many parts of a study are finished in its folder."""
    return 0 if out is None else len(list((Path(out) / PARTS).glob(f"{name}-*.json")))


def _plan_attattr(asked: Mapping[str, Any], out: Any, device: str | None) -> Plan:
    """What the study attattr would take, from the speed of its models."""
    check_tasks(asked["models"], asked["tasks"])
    plans = []
    for task in asked["tasks"]:
        if out is not None and list((Path(out) / PARTS).glob(f"attattr-{task}-*.json")):
            continue
        subject = load(str(Path(asked["models"]) / task), device=device)
        ranked = texts(task, split="train", count=asked["rank_on"], seed=SEED)
        tried = texts(task, split="dev", count=asked["count"], seed=SEED)
        how = {**COLUMNS, "subject": subject, "truncate": True, "steps": asked["steps"]}
        curve = {**how, "rank_on": ranked, "try_on": tried, "by": (), "draws": 5, "seed": SEED}
        effect = {**how, "data": tried[: asked["effect_on"]], "by": ("attattr", "attention")}
        words = {**how, "data": tried, "candidates": None, "extract_from": 100, "draws": 5}
        own = [plan_curve(curve, {}), plan_effectiveness(effect, {}), plan_triggers(words, {})]
        joined_own = joined("study", subject.name, own)
        plans.append(replace(joined_own, seconds_by_work={task: joined_own.seconds}))
    if not plans:
        raise UsageError(f"all tasks are done in {out}: there is nothing to plan")
    return joined("study attattr", ", ".join(asked["tasks"]), plans)


def plan_whole_audit(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What `audit` would take, from each method tried on one text."""
    left = {name: value for name, value in given.items() if name not in ("out", "watch", "engine")}
    left["texts_for_expensive"] = left.pop("some") or left["texts_for_expensive"]
    left["texts_for_slowest"] = left.pop("few") or left["texts_for_slowest"]
    named = [left.pop(name) for name in ("subject", "data", "methods", "measures", "trials")]
    audit = plan_audit(*named, **left)
    return estimate(audit).plan(audit)


def joined(verb: str, model: str, plans: Sequence[Plan]) -> Plan:
    """Several plans, one after the other, as one."""
    texts_of_all = sum(each.texts for each in plans)
    passes, most_passes = (
        sum(often * each.texts for often, each in zip(known, plans, strict=True))
        / max(texts_of_all, 1)
        for known in (
            [each.passes or 0 for each in plans],
            [each.most_passes or each.passes or 0 for each in plans],
        )
    )
    by_work: dict[str, float] = {}
    for each in plans:
        for name, seconds in each.seconds_by_work.items():
            by_work[name] = by_work.get(name, 0.0) + seconds
    largest = sorted(by_work, key=lambda name: -by_work[name])
    shown = {name: by_work[name] for name in largest[:3]}
    if largest[3:]:
        shown["all else"] = sum(by_work[name] for name in largest[3:])
    notes = tuple(dict.fromkeys(note for each in plans for note in each.notes))
    return replace(
        max(plans, key=lambda each: each.peak),
        verb=verb,
        model=model,
        texts=texts_of_all,
        tokens=sum(each.tokens for each in plans),
        longest=max(each.longest for each in plans),
        passes=passes,
        seconds=sum(each.seconds for each in plans),
        seconds_by_work=shown,
        notes=notes,
        most_seconds=sum(each.most_seconds or each.seconds for each in plans),
        most_passes=most_passes,
    )
