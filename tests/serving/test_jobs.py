"""Jobs: what each finds, and how the board runs, cancels, keeps and resumes them.

Small processes stand in for the board's own here; test_running.py has a real server.
"""

import multiprocessing
import os
from time import monotonic, sleep

import pytest

import attlas
from attlas.progress import Step
from attlas.serving.errors import NoSuchThing, Refused
from attlas.serving.jobs import board as boards
from attlas.serving.jobs.auditing import work_audit
from attlas.serving.jobs.board import JobBoard
from attlas.serving.jobs.pruning import work_prune
from attlas.serving.jobs.searching import work_adversary, work_same_output
from attlas.serving.jobs.telling import Teller
from attlas.serving.requests import AdversaryJob, AuditJob, PruneJob, SameOutputJob
from attlas.serving.settings import Limits, Settings
from attlas.serving.shelf import Shelf
from attlas.views.map_codes import read_site

TEXT = "not a great film, but I could not look away"
ASKED = {"model": "sentiment", "input": {"text": TEXT}}
PLANTED = "in a week the wide bench cobalt reached the round tower in a week the broad mill"
SMALL = {"model": "shortcut_token", "input": {"text": PLANTED}}


class Told(list):
    """Everything that a job told."""

    @property
    def teller(self):
        return Teller(self.append, lambda *point: self.append(point))

    @property
    def points(self):
        return [each for each in self if not isinstance(each, Step)]


@pytest.fixture(scope="module")
def subject():
    return attlas.load("shortcut_token")


def made(kind, **fields):
    return kind.model_validate(fields, strict=False)


def test_the_adversary_is_far_and_keeps_the_output(subject, post, tmp_path):
    told = Told()
    job = made(AdversaryJob, job="adversary", **SMALL, tolerance=0.02)
    found = work_adversary(subject, job, told.teller, tmp_path)
    assert found["change"] <= 0.02 and 0.05 < found["distance"] <= found["largest"] + 1e-6
    distances = [distance for distance, _ in told.points]
    assert len(distances) > 20 and distances == sorted(distances)
    assert distances[-1] == pytest.approx(found["distance"])
    assert told[-2].done <= told[-2].total
    put_in = post("intervene", **SMALL, edits=found["edits"], maps=True)
    assert put_in["after"]["score"] == pytest.approx(found["after"]["score"], abs=1e-6)
    assert put_in["moved"] <= 0.02 + 1e-6
    own, other = (read_site(found[name]["maps"]["sites"][0]) for name in ("own", "other"))
    assert abs(own - other).max() > 0.1


def test_the_same_output_comes_from_another_attention(subject, post, tmp_path):
    told = Told()
    found = work_same_output(
        subject, made(SameOutputJob, job="same_output", **SMALL), told.teller, tmp_path
    )
    assert found["distance"] > 0.05 and found["change"] < 1e-5 and len(told.points) == 4
    put_in = post("intervene", **SMALL, edits=found["edits"])
    assert put_in["moved"] < 1e-5


def test_a_short_text_has_no_other_attention(subject, tmp_path):
    short = {"model": "shortcut_token", "input": {"text": "the cobalt tower"}}
    job = made(SameOutputJob, job="same_output", **short)
    found = work_same_output(subject, job, Told().teller, tmp_path)
    assert (found["edits"], found["distance"]) == ([], 0.0) and found["note"]


def test_pruning_has_a_point_for_each_number_of_heads(subject, tmp_path):
    told = Told()
    job = made(PruneJob, job="prune", model="shortcut_token", data="shortcuts", count=20)
    found = work_prune(subject, job, told.teller, tmp_path)
    assert [each["heads"] for each in found["points"]] == list(range(9)) and told
    assert {(each["layer"], each["head"]) for each in found["order"]} == {
        (layer, head) for layer in range(2) for head in range(4)
    }
    values = [each["importance"] for each in found["order"]]
    assert values == sorted(values)
    assert found["points"][0] == found["random"][0] and found["points"][0]["accuracy"] > 0.9


@pytest.mark.slow
def test_an_audit_leaves_a_report(tmp_path):
    texts = attlas.texts("shortcuts", count=8)
    given = [{"text": each.text, "label": each.label} for each in texts]
    told = Told()
    job = made(AuditJob, job="audit", model="shortcut_token", texts=given)
    found = work_audit(attlas.load("shortcut_token"), job, told.teller, tmp_path / "abc")
    assert found["verdict"] and found["report"] == "/reports/abc" and told
    assert (tmp_path / "abc" / "report.html").read_text().startswith("<!doctype html>")


@pytest.fixture
def boarded(tmp_path, monkeypatch):
    """Makes boards whose processes run this function; all share one folder."""
    made_boards = []
    monkeypatch.setattr(boards, "_context", lambda: multiprocessing.get_context("fork"))

    def board(work, **limits):
        def work_on(connection, order):
            connection.send(("step", {"what": "working", "done": 0, "total": 1, "left": None}))
            work(connection, order)

        monkeypatch.setattr(boards, "work_on", work_on)
        settings = Settings(tmp_path, ("sentiment", "shortcut_token"), limits=Limits(**limits))
        made_boards.append(JobBoard(settings, Shelf(settings.models)))
        made_boards[-1].start()
        return made_boards[-1]

    yield board
    for each in made_boards:
        each.close()


def finishes(connection, order):
    connection.send(("point", [0.5, 0.01]))
    connection.send(("done", {"name": order.name}))


def hangs(connection, order):
    sleep(60)


def until(board, number, *states):
    end = monotonic() + 20
    while (found := board.find(number))["state"] not in states:
        assert monotonic() < end, found
        sleep(0.02)
    return found


ADVERSARY = made(AdversaryJob, job="adversary", **ASKED)
PRUNE = made(PruneJob, job="prune", model="sentiment")


def test_a_job_runs_to_its_end(boarded):
    board = boarded(finishes)
    begun, is_new = board.submit(ADVERSARY)
    assert is_new and begun["state"] in ("queued", "running")
    found = until(board, begun["id"], "done")
    assert found["result"] == {"name": "sentiment"} and found["points"] == [[0.5, 0.01]]
    assert found["ended"] >= found["created"] and board.find(begun["id"], 1)["points"] == []
    assert [each["id"] for each in board.lines()] == [begun["id"]]


def test_the_same_pruning_is_done_once(boarded):
    board = boarded(finishes)
    first, _ = board.submit(PRUNE)
    until(board, first["id"], "done")
    again, is_new = board.submit(PRUNE)
    assert not is_new and again["id"] == first["id"] and again["result"]
    assert board.submit(made(PruneJob, job="prune", model="sentiment", seed=1))[1]
    assert board.submit(ADVERSARY)[0]["id"] != board.submit(ADVERSARY)[0]["id"]


def test_a_cancelled_job_stops_at_once(boarded):
    board = boarded(hangs)
    running, waiting = (board.submit(ADVERSARY)[0]["id"] for _ in range(2))
    until(board, running, "running")
    with pytest.raises(Refused, match="cancel it first"):
        board.forget(running)
    begun = monotonic()
    assert board.cancel(waiting)["state"] == "cancelled"
    board.cancel(running)
    assert until(board, running, "cancelled")["result"] is None
    assert monotonic() - begun < 3
    with pytest.raises(Refused, match="ended already"):
        board.cancel(running)
    board.forget(running)
    with pytest.raises(NoSuchThing):
        board.find(running)


def test_a_job_that_takes_too_long_fails(boarded):
    board = boarded(hangs, job_seconds=0.3)
    number = board.submit(ADVERSARY)[0]["id"]
    assert "longer than 0.3 seconds" in until(board, number, "failed")["error"]


def test_a_process_that_dies_fails_its_job_alone(boarded):
    board = boarded(lambda connection, order: os._exit(3))
    number = board.submit(ADVERSARY)[0]["id"]
    assert "unexpectedly" in until(board, number, "failed")["error"]


def test_what_a_job_says_of_its_failure_is_kept(boarded):
    board = boarded(lambda connection, order: connection.send(("failed", "no such layer")))
    assert until(board, board.submit(ADVERSARY)[0]["id"], "failed")["error"] == "no such layer"


def test_too_many_jobs_are_refused(boarded):
    board = boarded(hangs, job_queue=1)
    until(board, board.submit(ADVERSARY)[0]["id"], "running")
    board.submit(ADVERSARY)
    with pytest.raises(Refused, match="too many jobs"):
        board.submit(ADVERSARY)


def test_unfinished_jobs_go_on_at_the_next_start(boarded):
    first = boarded(hangs)
    done = first.submit(ADVERSARY)[0]["id"]
    until(first, done, "running")
    waiting = first.submit(PRUNE)[0]["id"]
    first.close()
    second = boarded(finishes)
    for number in (done, waiting):
        assert until(second, number, "done")["result"]
    second.close()
    third = boarded(hangs)
    assert {each["id"]: each["state"] for each in third.lines()} == {done: "done", waiting: "done"}


def test_data_and_models_of_a_job_are_those_of_the_operator(boarded):
    board = boarded(finishes)
    with pytest.raises(NoSuchThing):
        board.submit(made(PruneJob, job="prune", model="dates"))
    for data in ("/etc/passwd", "shortcuts", "sst"):
        with pytest.raises(Refused, match="no such texts"):
            board.submit(made(PruneJob, job="prune", model="sentiment", data=data))
    assert board.submit(PRUNE)[0]["request"]["data"] == "reviews"


def test_the_routes_of_jobs(client):
    assert client.get("/api/jobs/none").status_code == 404
    assert client.get("/api/jobs/none?points_from=x").status_code == 422
    assert client.post("/api/jobs/none/cancel").status_code == 404
    assert client.delete("/api/jobs/none").status_code == 404
    assert client.get("/reports/none").status_code == 404
    assert client.post("/api/jobs", json={"job": "explode"}).status_code == 422
    wrong = {"job": "prune", "model": "sentiment", "data": "/etc/passwd"}
    assert client.post("/api/jobs", json=wrong).status_code == 422
