"""The catalogue says of parts what registries say; lists and mistakes do not wait for torch."""

import json
import os
import subprocess
import sys

import pytest

from attlas.catalogue import (
    FAMILIES,
    SCOPES,
    catalogue,
    check_names,
    known_options,
)
from attlas.embedded.verify import cards
from attlas.errors import UnknownNameError
from attlas.measures import MEASURES
from attlas.methods import METHODS
from attlas.models.facts.places import embedded_names
from attlas.models.load import load
from attlas.scoring import BENCHES
from attlas.trials import TRIALS
from attlas.trials.support.scope import KINDS

REGISTRIES = {"method": METHODS, "measure": MEASURES, "trial": TRIALS}


@pytest.mark.parametrize("kind", REGISTRIES)
def test_every_part_is_described_as_it_is(kind):
    registry = REGISTRIES[kind]
    assert list(catalogue(kind)) == list(registry.built_in)
    for name, facts in catalogue(kind).items():
        part = registry[name]
        assert {field: getattr(part, field) for field in facts.record} == facts.record
        if kind != "measure":
            assert list(facts.options) == list(part.options)
        if kind == "method":
            assert dict(facts.options) == dict(part.options)
            assert facts.summary == part.summary


def test_names_are_known_with_hyphens_and_unknown_ones_get_the_nearest():
    check_names("method", ["attention-rollout", "lime"])
    assert known_options("method", "attention-rollout")["residual"] == 0.5
    with pytest.raises(UnknownNameError, match="did you mean 'attention_rollout'"):
        check_names("method", ["attention_rolout"])


@pytest.mark.parametrize("card", cards(), ids=lambda card: card.name)
def test_a_card_says_the_task_and_the_attention_of_its_model(card):
    subject = load(card.name)
    last = {site.kind: site for site in subject.sites}
    assert card.task == subject.task.name
    assert card.sites == ", ".join(
        f"{site.layer + 1} {kind} × {site.heads}" for kind, site in last.items()
    )


CALLS = """
import contextlib, io, json, sys
from attlas.cli.main import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["attlas", *arguments]
    status, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stopped:
            status = stopped.code or 0
    print(json.dumps([status, "torch" in sys.modules, out.getvalue(), err.getvalue()]))
"""
ASKED = [
    (["methods"], 0, ""),
    (["methods", "--json"], 0, ""),
    (["models"], 0, ""),
    (["explain", "--methd", "x", "a"], 2, "No such option: --methd"),
    (["explain", "--method", "atention_rollout", "a"], 2, "unknown method"),
    (["explain", "--option", "stps=2", "a"], 2, "unknown option of attn_lrp"),
    (["explain", "--model", "./nowhere", "a"], 1, "the folder ./nowhere is not there"),
    (["audit", "--measure", "locaton"], 2, "unknown measure 'locaton'"),
    (["audit", "--trial", "permutations"], 2, "unknown trial 'permutations'"),
    (["audit", "--data", "nothing.csv"], 2, "nothing.csv"),
    (["trial", "uniform", "--option", "repeats=3"], 2, "unknown option of uniform"),
    (["heads", "--data", "nothing.csv"], 2, "nothing.csv"),
    (["triggers", "--model", "./nowhere"], 1, "the folder ./nowhere is not there"),
    (["explain", "--model", "sentimnet", "a"], 1, "did you mean 'sentiment'"),
    (["explain", "--dtype", "float3", "a"], 2, "did you mean 'float32'"),
    (["explain", "--device", "gpu:0", "a"], 2, "unknown device 'gpu:0'"),
    (["explain", "--task", "causal", "a"], 2, "did you mean 'causal lm'"),
    (["explain", "--html", "nowhere/a.html", "a"], 2, "the folder nowhere is not there"),
    (["explain", " "], 2, "the text is empty"),
    (["audit", "--data", "reviews", "--split", "tset"], 2, "has no split 'tset'"),
    (["tree", "--variant", "publishd", "a"], 2, "did you mean 'published'"),
    (["trial", "uniform", "--scope", "al"], 2, "did you mean 'all'"),
    (["heads", "--by", "atattr"], 2, "did you mean 'attattr'"),
    (["methods", "--score", "--model", "recal"], 2, "did you mean 'recall'"),
    (["audit", "--removal", "delet"], 2, "did you mean 'delete'"),
    (["audit", "--retrain", "nothing.csv"], 2, "nothing.csv"),
    (["tree", "--svg", "a.bmp", "a"], 2, "a drawing ends in .svg, .png, .pdf, not '.bmp'"),
    (["study", "attattr", "--modles", "nowhere"], 2, "did you mean '--models'"),
    (["study", "atattr"], 2, "did you mean 'attattr'"),
    (["study", "--list"], 0, ""),
    (["explain", "--data", "nothing.csv", "--out", "o.parquet"], 2, "nothing.csv"),
]


@pytest.fixture(scope="module")
def called():
    """What each command said, all asked of one process: the first to wait for torch is seen."""
    asked = json.dumps([arguments for arguments, _, _ in ASKED])
    done = subprocess.run(
        [sys.executable, "-c", CALLS, asked],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    lines = done.stdout.splitlines()
    return {
        tuple(arguments): json.loads(line)
        for (arguments, _, _), line in zip(ASKED, lines, strict=True)
    }


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    ASKED,
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_lists_and_mistakes_do_not_wait_for_torch(arguments, status, message, called):
    ended, waited, out, err = called[tuple(arguments)]
    assert (ended, waited) == (status, False)
    assert message in " ".join(err.splitlines()) and (status == 0) == bool(out)


def test_what_is_known_before_torch_is_what_is_known_after():
    assert set(embedded_names()) == set(BENCHES)
    assert {each.family for each in METHODS} == set(FAMILIES)
    assert list(SCOPES) == list(KINDS)


@pytest.mark.parametrize("command", ["methods", "models"])
def test_lists_fit_eighty_columns(command, called):
    assert max(map(len, called[command,][2].splitlines())) <= 80
