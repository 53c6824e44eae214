"""The command, the description, and the documentation of the server."""

import asyncio
import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from typer.testing import CliRunner

from attlas.catalogue import REMOVALS
from attlas.cli.main import commands
from attlas.errors import ResultFileError, UsageError
from attlas.models.facts.sites import KINDS
from attlas.results.support.lock import locked
from attlas.serving import app as serving
from attlas.serving import requests
from attlas.serving.app import run as serve_now
from attlas.serving.jobs.store import JobStore
from attlas.serving.laboratory import Workers
from attlas.serving.routes import ROUTES, description
from attlas.serving.settings import Limits, Settings
from attlas.serving.shelf import Shelf

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serve.md").read_text("utf-8")


def run(monkeypatch, *arguments):
    """The settings that the command hands to the server."""
    handed = []
    monkeypatch.setattr(serving, "run", lambda settings, *_: handed.append(settings))
    result = CliRunner().invoke(commands(), ["serve", *arguments], catch_exceptions=False)
    return handed[0] if handed else result


def test_it_listens_on_this_machine_alone_without_a_token(monkeypatch, tmp_path):
    settings = run(monkeypatch, "--keep", str(tmp_path))
    assert (settings.host, settings.token, settings.is_local) == ("127.0.0.1", None, True)
    assert settings.keep == tmp_path and settings.models == ()


def test_a_server_for_others_makes_a_token(monkeypatch):
    tokens = {run(monkeypatch, "--host", "0.0.0.0").token for _ in range(2)}
    assert len(tokens) == 2 and all(len(token) >= 32 for token in tokens)
    assert run(monkeypatch, "--host", "0.0.0.0", "--token", "x").token == "x"


def test_the_operator_sets_limits_and_models(monkeypatch):
    settings = run(monkeypatch, "sentiment", "recall", "--most-characters", "9", "--jobs", "3")
    assert settings.models == ("sentiment", "recall")
    assert (settings.limits.characters, settings.limits.jobs) == (9, 3)


def test_without_its_packages_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(Exception, match=r'pip install "attlas\[serve\]"'):
        run(monkeypatch)


def test_keys_are_short_and_differ():
    shelf = Shelf(["/models/mine", "org/mine", "sentiment"])
    assert {key: each.name for key, each in shelf.entries.items()} == {
        "mine": "/models/mine", "mine-2": "org/mine", "sentiment": "sentiment",
    }  # fmt: skip


def test_a_model_that_cannot_be_loaded_says_so_and_others_work():
    found = Shelf(["/no/such/folder", "recall"]).described(Settings(Path()).limits)
    broken, fine = found["models"]
    assert broken["error"] and not broken["sites"]
    assert fine["error"] is None and fine["sites"]


def test_requests_know_what_attlas_knows():
    assert requests.Removal.__args__ == REMOVALS
    assert requests.SiteKind.__args__ == KINDS


def test_the_description_names_every_route_and_is_sound():
    found = description(Settings(Path(), token="x"))
    named = {(method, path) for path, each in found["paths"].items() for method in each}
    assert named == {(each.method.lower(), each.path) for each in ROUTES}
    text = json.dumps(found)
    for reference in set(re.findall(r'"#/components/schemas/(\w+)"', text)):
        assert reference in found["components"]["schemas"]


def test_the_documentation_names_every_route():
    for route in ROUTES:
        assert f"{route.method} {route.path.replace('{id}', 'ID')}" in PAGE, route.path


def documented():
    """Each JSON of the page, with the heading that it stands under."""
    heading = ""
    for part in re.split(r"^(#+ .*)$", PAGE, flags=re.MULTILINE):
        if part.startswith("#"):
            heading = part.strip("# ")
        for block in re.findall(r"```json\n(.*?)```", part, re.DOTALL):
            try:
                yield heading, json.loads(block)
            except json.JSONDecodeError:  # one object a line
                yield from ((heading, json.loads(line)) for line in block.splitlines())


def test_the_documented_requests_and_answers_fit_their_schemas():
    routes = {f"{each.method} {each.path}": each for each in ROUTES}
    seen = set()
    examples = list(documented())
    for heading, example in examples:
        route = routes.get(heading)
        if heading == "Jobs" and "job" in example and "id" not in example:
            if "texts" not in example:  # an audit of texts needs more than fit on the page
                TypeAdapter(requests.JobRequest).validate_json(json.dumps(example))
            seen.add(example["job"])
        elif route and route.takes is not None and heading not in {*seen, "POST /api/code"}:
            TypeAdapter(route.takes).validate_json(json.dumps(example))
            seen.add(heading)
        elif route is not None and route.returns is not None:
            TypeAdapter(route.returns).validate_python(example)
            seen.add(f"{heading}, answer")
    state = next(each for heading, each in examples if heading == "The state")
    requests.State.model_validate_json(json.dumps(state))
    (edits,) = (each for heading, each in examples if heading == "Edits")
    for each in edits:
        requests.GivenEdit.model_validate_json(json.dumps(each))
    assert {"adversary", "same_output", "prune", "audit"} < seen
    assert {f"POST /api/{name}, answer" for name in ("explain", "intervene", "curves")} < seen


def test_the_container_is_not_run_by_root():
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    users = [line for line in lines if line.startswith("USER")]
    assert users and users[-1] != "USER root"
    assert lines.index(users[-1]) < next(i for i, x in enumerate(lines) if x.startswith("ENTRY"))


def test_a_folder_of_jobs_is_one_servers(monkeypatch, tmp_path):
    """Another would begin those that the first one runs."""
    monkeypatch.setattr("attlas.serving.app.make_app", None)
    with locked(tmp_path / "lock"), pytest.raises(UsageError, match=r"in use .*--keep"):
        serve_now(Settings(tmp_path, port=0), False, print)


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0" + b"\xff" * 2000])
def test_a_damaged_file_of_jobs_is_one_line(content, tmp_path):
    (tmp_path / "jobs.sqlite").write_bytes(content)
    with pytest.raises(ResultFileError, match=r"jobs\.sqlite' cannot be read") as told:
        JobStore(tmp_path)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "line",
    ["create table jobs (mine text)", "update jobs set request = '['", "drop table jobs"],
)
def test_a_file_of_others_jobs_is_one_line(line, tmp_path):
    store = JobStore(tmp_path)
    known = {"job": "audit", "model": "m", "title": "t", "state": "done", "created": 1.0}
    store.add({"id": "1", **known, "request": {}})
    store.close()
    with closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as file, file:
        if line.startswith("create"):
            file.execute("drop table jobs")
        file.execute(line)
    if line.startswith("drop"):  # it is made anew
        assert JobStore(tmp_path).lines() == []
        return
    with pytest.raises(ResultFileError, match=r"jobs\.sqlite' cannot be read"):
        JobStore(tmp_path)


def test_a_request_that_outlives_the_server_says_nothing():
    loop = asyncio.new_event_loop()
    loop.close()
    Workers(Limits())._ended(loop)
