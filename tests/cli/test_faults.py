"""Faults around the command line: one line on standard error, and nothing a terminal would obey."""

import os
import subprocess
import sys
import threading

import pytest
import tiny
import torch

from attlas.cli import main as line
from attlas.progress import say
from attlas.views import write_whole


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model whose labels move the cursor, ring the bell, and are 5,000 signs long."""
    folder = tmp_path_factory.mktemp("hostile")
    model, tokenizer = tiny.subject_parts("sequence classification")
    model.config.id2label = {0: "\x1b[2J\x07red", 1: "\x9b31m" + "x" * 5000, 2: "plain"}
    model.config.label2id = {label: n for n, label in model.config.id2label.items()}
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def is_tame(text):
    return all(sign.isprintable() or sign == "\n" for sign in text)


def test_labels_say_nothing_to_the_terminal(run, hostile):
    status, out, err = run("explain", "--model", hostile, "--target", "\x1b[1m", "a film")
    assert status == 2 and err.count("\n") == 1 and len(err) < 2500
    assert is_tame(err) and is_tame(out)
    status, out, err = run("explain", "--model", hostile, "--method", "raw_attention", "a film")
    assert status == 0 and is_tame(out) and is_tame(err)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "\udcff", "a/" + "b" * 5000])
def test_names_that_nothing_has(run, name):
    for words in (["--model", name, "a film"], ["--data", name, "--out", "scores.parquet"]):
        status, _, err = run("explain", *words)
        assert status in (1, 2) and err.count("\n") == 1 and len(err) < 2500
        assert "cannot write" not in err


def test_a_text_with_half_a_sign(run):
    for words in ([], ["--json"]):
        status, out, err = run("explain", *words, "--method", "raw_attention", "a film \udcff")
        assert (status == 0 and out) or (status == 2 and err.count("\n") == 1)


def test_signs_that_the_output_cannot_spell():
    command = [sys.executable, "-m", "attlas", "methods"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    told = subprocess.run(command, capture_output=True, text=True, env=plain)
    assert told.returncode == 0 and "\\x" in told.stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize("words", [["methods"], ["methods", "--json"], ["--version"]])
def test_a_full_device(words):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "attlas", *words]
        told = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert told.returncode == 1
    *_, last = told.stderr.splitlines()
    assert last == "attlas: cannot write the output: No space left on device"
    assert "Traceback" not in told.stderr and "ignored" not in told.stderr


def test_a_pipe_is_written_to_and_never_replaced(tmp_path):
    """What holds for it holds for a device, which a failed test would destroy."""
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_whole(pipe, "a page")
    assert pipe.is_fifo()
    reader.join(20)
    assert read == ["a page"]


def test_a_line_of_ours_says_nothing_to_the_terminal(capsys):
    say("attlas: stopped after \x1b[2J\x07 of \x9b31m")
    assert is_tame(capsys.readouterr().err)


SHORTAGES = [
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB\nmore"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
    ImportError("scipy/_core.so: failed to map segment from shared object"),
    OSError("libtorch.so: cannot allocate memory in static TLS block"),
]


@pytest.mark.parametrize("problem", SHORTAGES, ids=lambda each: type(each).__name__)
def test_memory_that_runs_short_is_one_line(run, monkeypatch, problem):
    def fail():
        raise problem

    monkeypatch.setattr(line, "commands", lambda: fail)
    status, _, err = run("methods")
    assert status == 1 and err.count("\n") == 1 and "not enough memory" in err


def test_a_module_that_is_missing_is_no_shortage(run, monkeypatch):
    def fail():
        raise ModuleNotFoundError("No module named 'scipy'")

    monkeypatch.setattr(line, "commands", lambda: fail)
    with pytest.raises(ModuleNotFoundError):
        run("methods")


@pytest.mark.skipif(sys.platform != "linux", reason="only there are addresses limited so")
def test_libraries_that_no_address_is_left_for_are_one_line():
    limited = "import resource as r; r.setrlimit(r.RLIMIT_AS, (3 * 10**8, -1)); "
    code = f"{limited}from attlas.cli.main import main; main()"
    command = [sys.executable, "-c", code, "explain", "a good film"]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 1 and "Traceback" not in told.stderr
    *_, last = told.stderr.splitlines()
    assert last.startswith("attlas: there is not enough memory: ImportError: ")
