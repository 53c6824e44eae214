"""Figures that need a GPU: jobs end in time, and go on from what was found; a base fits the way."""

import importlib
import json
import signal
import sys
import time
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch

SCRIPTS = Path(__file__).parents[1] / "scripts"
LONG = 60 * 60.0


@pytest.fixture
def scripts(monkeypatch):
    """A script of the folder, as those beside it import it."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if (SCRIPTS / f"{name}.py").is_file():
            del sys.modules[name]


@pytest.fixture
def figures(scripts, tmp_path, monkeypatch):
    """The script in a folder of its own, in a repository that keeps nothing."""
    found = scripts("gpu_figures")
    monkeypatch.setattr(found.study_parts, "KEPT", tmp_path / "kept")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    found.go_on_from(tmp_path / found.ARCHIVE)
    return found


def machine(figures, seconds=LONG, small=False):
    return figures.Machine("cpu", 2, small, time.monotonic() + figures.LAST + seconds)


def python(line):
    return [sys.executable, "-c", line]


def test_what_is_running_is_ended_when_the_time_is_up(figures, monkeypatch, tmp_path):
    quick, archive = Path("parts/quick.json"), tmp_path / figures.ARCHIVE
    lines = [f"open({str(quick)!r}, 'w').write('1')", f"import time; time.sleep({LONG})"]
    started, begin = [], figures.subprocess.Popen

    def noted(*given, **named):
        started.append(begin(*given, **named))
        return started[-1]

    monkeypatch.setattr(figures.subprocess, "Popen", noted)
    monkeypatch.setattr(figures.Machine, "left", lambda own: 0.0 if quick.exists() else LONG)
    monkeypatch.setitem(figures.JOBS, "chefer", lambda own: iter([[python(x)] for x in lines]))
    assert figures.do(["chefer"], machine(figures), archive) == 1
    assert [each.returncode is None for each in started] == [False, False]
    again = tmp_path / "again"
    again.mkdir()
    monkeypatch.chdir(again)
    figures.go_on_from(archive)
    assert quick.read_text() == "1"


def test_rows_reach_the_archive_while_the_job_that_makes_them_runs(figures, monkeypatch, tmp_path):
    archive = tmp_path / figures.ARCHIVE
    job = f"""
import pathlib, sys, time, zipfile
pathlib.Path("benchmarks/costs.json").write_text("[1]")
for _ in range(200):
    time.sleep(0.05)
    if pathlib.Path({str(archive)!r}).exists():
        sys.exit("benchmarks/costs.json" not in zipfile.ZipFile({str(archive)!r}).namelist())
sys.exit(2)
"""
    monkeypatch.setattr(figures, "EVERY", 0.1)
    monkeypatch.setitem(figures.JOBS, "costs", lambda own: iter([[python(job)]]))
    assert figures.do(["costs"], machine(figures), archive) == 0


def test_a_script_that_is_ended_ends_its_commands_and_packs_what_they_found(
    figures, monkeypatch, tmp_path
):
    job = "import os, time; open('benchmarks/costs.json', 'w').write('[1]'); "
    job += f"os.kill(os.getppid(), {int(signal.SIGTERM)}); time.sleep({LONG})"
    started, begin = [], figures.subprocess.Popen

    def noted(*given, **named):
        started.append(begin(*given, **named))
        return started[-1]

    monkeypatch.setattr(figures.subprocess, "Popen", noted)
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "environment", dict)
    monkeypatch.setitem(figures.JOBS, "costs", lambda own: iter([[python(job)]]))
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as ended:
            figures.main(["costs", "--out", str(tmp_path), "--small"])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 128 + signal.SIGTERM
    assert [each.returncode is None for each in started] == [False]
    assert "benchmarks/costs.json" in ZipFile(tmp_path / figures.ARCHIVE).namelist()


def test_short_jobs_come_first(figures, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "environment", dict)
    monkeypatch.setattr(figures, "run", lambda *_: "finished")
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert figures.main(["better_attention", "costs", "workers", "--out", str(tmp_path)]) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    told = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert told == ["workers", "costs", "better_attention"]


def test_a_job_that_fails_lets_the_next_begin(figures, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(figures.JOBS, "costs", lambda own: iter([[python("1/0")]]))
    monkeypatch.setitem(figures.JOBS, "million", lambda own: iter([[python("print(7)")]]))
    assert figures.do(["costs", "million"], machine(figures), tmp_path / figures.ARCHIVE) == 1
    told = capsys.readouterr().out
    assert "costs: failed" in told and "million: finished" in told
    assert "ZeroDivisionError" in Path("logs/costs.txt").read_text()
    assert figures.do(["million"], machine(figures, 0), tmp_path / figures.ARCHIVE) == 1
    assert "million: not begun" in capsys.readouterr().out


@pytest.mark.parametrize("small", [True, False])
def test_every_command_is_one_of_a_script_that_is_there(figures, small):
    own = machine(figures, small=small)
    for name, job in figures.JOBS.items():
        for command in (command for step in job(own) for command in step):
            assert all(isinstance(word, str) for word in command), name
            assert command[1] == "-m" or Path(command[1]).is_file(), name


def test_a_model_is_trained_again_unless_it_or_all_of_its_parts_are_there(figures):
    from attlas.studies.chefer import METHODS_TRIED

    for seed in (1, 2, 3):
        folder = Path(figures.MODELS) / f"seed-{seed}"
        folder.mkdir(parents=True)
        (folder / "training.json").write_text(json.dumps({"weights": f"abc{seed}"}))
    (Path(figures.MODELS) / "seed-3" / "config.json").write_text("{}")
    for seed, methods in ((1, METHODS_TRIED), (2, METHODS_TRIED[1:])):
        for method in methods:
            name = f"chefer-{method}-on-models-eraser-movies-seed-{seed}-of-weights-abc{seed}-00"
            Path(f"parts/{name}.json").write_text("{}")
    assert figures.untaught(machine(figures)) == [0, 2, 4]


def test_numbers_are_the_same_when_their_bytes_come_together_again(scripts):
    slim = scripts("slim_base")
    state = {"a": torch.randn(3, 4).half(), "b b": torch.randn(5).half()}
    again = slim.whole(slim.in_bytes(state))
    assert again.keys() == state.keys()
    assert all(torch.equal(again[name], each) for name, each in state.items())


def test_rounding_ends_with_the_training_however_it_ends(scripts):
    tune, before = scripts("fine_tune"), torch.get_float32_matmul_precision()
    with pytest.raises(ZeroDivisionError), tune.rounded_products():
        assert torch.get_float32_matmul_precision() == "high"
        raise ZeroDivisionError
    assert torch.get_float32_matmul_precision() == before == "highest"
