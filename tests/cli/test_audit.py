"""The command `audit`."""

import csv
import json
import signal
from collections import Counter

import pytest
import tiny
from subjects import LONG, OTHER, SHORT

from attlas.cli.audit import command_line
from attlas.measures.support.recomputing import Recipe
from attlas.results.report import Report

TEXTS = (LONG, SHORT, OTHER)
FEW = ("--method", "raw-attention", "--measure", "sufficiency", "--trial", "none")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model and a table."""
    place = tmp_path_factory.mktemp("audit")
    model, tokenizer = tiny.subject_parts("sequence classification")
    model.save_pretrained(place / "model")
    tokenizer.save_pretrained(place / "model")
    with (place / "texts.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["review", "stars"])
        rows.writerows([text, "POSITIVE"] for text in (*TEXTS, ""))
    return place


@pytest.fixture
def audit(run, place):
    """Call the command on that model and that table."""

    def call(*arguments):
        known = ("--model", place / "model", "--data", place / "texts.csv", "--text", "review")
        return run("audit", *known, "--label", "stars", *arguments)

    return call


def test_a_dry_run_says_what_it_would_take_and_does_nothing(audit, tmp_path):
    status, out, err = audit(*FEW, "--dry-run", "--out", tmp_path / "new")
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[0].startswith("audit with ") and lines[1].startswith("3 texts, ")
    works = lines[5 : lines.index(next(line for line in lines if line.startswith("measured")))]
    assert [line.split("  ")[1].strip() for line in works] == [
        "explaining",
        "removing tokens",
        "running methods again",
        "checking removals",
        "trials",
    ]
    assert not (tmp_path / "new").exists()
    status, out, _ = audit(*FEW, "--dry-run", "--json")
    assert status == 0 and len(json.loads(out)["seconds_by_work"]) == 5


def test_a_dry_run_of_two_texts_speaks_too_and_tries_each_method_once_or_twice(audit, monkeypatch):
    asked = []
    score = Recipe.content_scores
    monkeypatch.setattr(
        Recipe,
        "content_scores",
        lambda recipe, question: (
            asked.append((recipe.method.name, len(question))) or score(recipe, question)
        ),
    )
    status, out, _ = audit("--count", 2, "--dry-run", "--quick")
    assert status == 0 and out.splitlines()[1].startswith("2 texts, ")
    assert {rows for _, rows in asked} == {1}
    assert max(Counter(asked).values()) <= 4  # integrated gradients have two baselines


def test_the_answer_is_shown_and_the_report_written(audit, tmp_path):
    status, out, err = audit(*FEW, "--removal", "mask", "--floor", 0.4, "--out", tmp_path)
    assert (status, err) == (0, "")
    assert len(out.splitlines()) <= 10 and "Too few texts to tell" in " ".join(out.split())
    assert f"wrote {tmp_path / 'report.html'}" in out.replace("\n", "")
    kept = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert list(kept["verdict"]["bounds"]) == ["delete", "mask"]
    assert kept["data"]["left_out"] == {"no text": 1}
    assert kept["trials"] == [] and kept["settings"]["methods"][0] == "raw_attention"
    assert "--removal mask" in kept["command"] and "--trial none" in kept["command"]
    assert kept["settings"]["rules"]["floor"] == 0.4 and kept["settings"]["rules"]["margin"] == 0.1
    assert "--floor 0.4" in kept["command"] and "--margin" not in kept["command"]


def test_a_finished_audit_is_shown_again_at_once(audit, tmp_path):
    first = audit(*FEW, "--out", tmp_path)
    again = audit(*FEW, "--out", tmp_path)
    assert again == first
    status, out, _ = audit(*FEW, "--out", tmp_path, "--table")
    assert status == 0 and "How the answer was reached" in out not in first[1]


def test_explain_says_how_far_it_was_found_right_or_how_to_find_out(audit, run, place, monkeypatch):
    monkeypatch.setenv("ATTLAS_AUDITS", str(place / "records"))
    asked = ("explain", "--model", place / "model", "--method", "raw-attention", LONG)
    _, before, _ = run(*asked)
    command = f"attlas audit --model {place / 'model'} --data FILE --quick"
    assert before.splitlines()[-2:] == ["How far can you trust this? Find out:", f"  {command}"]
    audit(*FEW, "--out", place / "out")
    _, after, _ = run(*asked)
    kept = Report.from_dict(json.loads((place / "out" / "report.json").read_text("utf-8")))
    own = [each.figure for each in kept.standings if each.method == "raw_attention"]
    low, high = min(each.low for each in own), max(each.high for each in own)
    found = f"{100 * low:.0f} % to {100 * high:.0f} %".replace("-", "−")
    told, page = after.rsplit("Audited on", 1)[1].rsplit("\n", 2)[:2]
    assert " ".join(told.split()) == (
        f"3 texts of {place / 'texts.csv'}: raw_attention finds {found} of what matters "
        "(0 %: chance)."
    )
    assert page == f"See {place / 'out' / 'report.html'}"
    _, other, _ = run(*asked[:-2], "alti", LONG)
    assert "How far can you trust this?" in other  # it was not among the methods
    _, as_json, _ = run(*asked, "--json")
    assert json.loads(as_json)["origin"]["method"] == "raw_attention"


@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_audit_that_is_stopped_says_how_to_go_on(
    audit, tmp_path, monkeypatch, request, name, status
):
    def stop_here(*given):
        signal.raise_signal(getattr(signal, name))

    monkeypatch.setattr("attlas.auditing.audit.collect", stop_here)
    interrupted = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, interrupted))
    before = signal.getsignal(signal.SIGTERM)
    ended, out, err = audit(*FEW, "--out", tmp_path / "kept")
    assert (ended, out) == (status, "") and signal.getsignal(signal.SIGTERM) == before
    told, command = err.splitlines()
    assert told.startswith("attlas: stopped after 4 of 4 parts; what is done is kept in ")
    assert command.startswith("attlas audit --model ") and command.endswith(f"{tmp_path / 'kept'}")
    if name == "SIGTERM":
        return
    _, _, err = audit(*FEW)
    assert "nothing was kept: an audit with a folder (out=, --out) can be continued" in err


def test_quick_in_json_is_one_document_that_can_be_read(audit):
    status, out, err = audit("--quick", "--trial", "none", "--json")
    report = Report.from_dict(json.loads(out))
    assert (status, err) == (0, "")
    assert report.to_dict() == json.loads(out)
    assert report.verdict.word == "too few texts" and report.data.texts == 3
    assert report.settings["removals"] == ["delete", "mask"] and "--quick" in report.command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "raw-atention"), "did you mean 'raw_attention'"),
        (("--measure", "suficiency"), "did you mean 'sufficiency'"),
        (("--removal", "maks"), "did you mean 'mask'"),
        (("--trial", "no-such-trial"), "unknown trial 'no-such-trial'"),
        (("--text", "reviw"), "reviw"),
        (("--data", "nowhere.csv"), "nowhere.csv"),
        (("--margin", 2), "floor and margin lie between 0 and 1; given: floor=0.3, margin=2"),
        (("--seed", -1), "seed is 0 or more, not -1"),
        (("--count", 1), "at least 2 texts, and there are 1"),
    ],
)
def test_mistakes_are_one_line(audit, arguments, message):
    status, out, err = audit(*arguments)
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_one_line(audit, tmp_path):
    (tmp_path / "file").write_text("mine")
    status, out, err = audit(*FEW, "--out", tmp_path / "file")
    assert (status, out) == (2, "") and "a file of that name exists" in err


def test_language_models_are_reckoned_too(run, tmp_path):
    model, tokenizer = tiny.subject_parts("causal lm")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    table = tmp_path / "texts.jsonl"
    table.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    status, out, _ = run("audit", "--model", tmp_path, "--data", table, *FEW, "--dry-run")
    assert status == 0 and out.startswith("audit with ")


def test_a_command_line_is_written_from_options():
    options = {
        **{"model": "a folder", "split": None, "count": 0, "quick": True, "truncate": False},
        **{"method": ["gradient", "alti"], "trial": [], "trust_remote_code": True},
    }
    assert command_line(options) == [
        *("--model", "a folder", "--count", "0", "--quick", "--method", "gradient"),
        *("--method", "alti", "--trust-remote-code"),
    ]


@pytest.mark.slow
def test_several_processes_find_the_same(audit, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        shown = audit(*FEW, "--measure", "sensitivity", "--workers", workers, "--out", out)
        assert "ended early" not in shown[2], shown[2]
        report = Report.from_dict(json.loads((out / "report.json").read_text("utf-8")))
        found.append((report.verdict, report.table, report.standings))
    assert found[0] == found[1]
