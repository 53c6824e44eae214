"""Jobs that search for another attention: far from the model's own, with the same output."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attlas.models.asking.question import Question
from attlas.models.subject import Subject
from attlas.progress import Step
from attlas.results import Site
from attlas.serving.jobs.telling import Teller
from attlas.serving.requests import AdversaryJob, GivenEdit, SameOutputJob, Searching
from attlas.serving.work.asking import asked_of
from attlas.serving.work.edits import edit_of
from attlas.serving.work.intervening import asked_again, maps_under, moved
from attlas.trials.searching.leeway import largest_divergence
from attlas.trials.searching.other_attention import find_other_attention
from attlas.trials.searching.search import HALVINGS, Search, SearchPlan
from attlas.trials.support.scope import Scope

NO_OTHER = (
    "There is no other: the output determines the weights of so few keys. A text with more tokens "
    "than a value has numbers leaves room."
)


def work_adversary(subject: Subject, job: AdversaryJob, teller: Teller, _: Path) -> dict[str, Any]:
    """The farthest attention of one layer that keeps the output within the tolerance."""
    question, site, scope = _asked(subject, job)
    plan = SearchPlan(tolerances=(job.tolerance,))
    total, done = 2 * (HALVINGS + 1) + plan.rounds + plan.steps, 0

    def watch(distance: Tensor, change: Tensor) -> None:
        nonlocal done
        done += 1
        teller.step(Step("searching", min(done, total), total))
        teller.point(float(distance[0, 0]), float(change[0, 0]))

    search = Search(question, scope, plan, watch)
    with torch.inference_mode(False):
        found = search.run(job.seed)
    distance = float(found.distance[0, 0])
    (leeway,) = found.leeways
    weights = leeway.rebuilt(found.shares[0][:1])[0]
    edit = _put(site, weights.double().cpu().tolist())
    largest = float(largest_divergence(found.leeways)[0].nan_to_num(0.0))
    known = {"distance": distance, "largest": largest, "tolerance": job.tolerance}
    known["change"] = float(found.change[0, 0])
    note = "" if distance > 0 else "No other attention was found within the tolerance."
    return _both(question, site, [edit] if distance > 0 else [], known) | {"note": note}


def work_same_output(
    subject: Subject, job: SameOutputJob, teller: Teller, _: Path
) -> dict[str, Any]:
    """Another attention in one row of one layer that mixes the very same vectors."""
    question, site, scope = _asked(subject, job)
    done = 0

    def watch(distance: float, error: float) -> None:
        nonlocal done
        done += 1
        teller.step(Step("searching, head by head", done, site.heads))
        teller.point(distance, error)

    teller.step(Step("searching, head by head", 0, site.heads))
    with torch.inference_mode(False):
        found = find_other_attention(question, 0, scope, job.seed, watch)
    weights = [[row] for row in found.others.tolist()]
    edits = [_put(site, weights, queries=[found.row])] if found.is_other else []
    distance = float(found.distances.max()) if edits else 0.0
    known = {"distance": distance, "largest": 1.0, "tolerance": 0.0, "change": found.moved}
    return _both(question, site, edits, known) | {"note": "" if edits else NO_OTHER}


def _asked(subject: Subject, job: Searching) -> tuple[Question, Site, Scope]:
    scope = Scope("layer", job.layer, specials=True)
    asked = asked_of(subject, job)
    (site,) = scope.sites(asked.subject)
    return asked.question(), site, scope


def _put(site: Site, weights: Any, queries: list[int] | None = None) -> dict[str, Any]:
    place = {"kind": site.kind, "layer": site.layer}
    rows = {} if queries is None else {"queries": queries}
    return {"action": "replace", **place, **rows, "weights": weights}


def _both(
    question: Question, site: Site, edits: list[dict[str, Any]], known: dict[str, float]
) -> dict[str, Any]:
    """The two attentions side by side, and what the model says with each."""
    subject = question.subject
    assert isinstance(subject, Subject)
    made = [edit_of(GivenEdit.model_validate(each, strict=False)) for each in edits]
    answers = moved(question, asked_again(question, made))
    return {
        **known,
        "site": site.name,
        "before": answers["before"],
        "after": answers["after"],
        "own": maps_under(subject, question, [], site.name),
        "other": maps_under(subject, question, made, site.name),
        "edits": edits,
    }
