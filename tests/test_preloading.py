"""Torch's libraries are loaded in its own order, and without Python's lock."""

import os
import subprocess
import sys

import pytest

WAITING = """
import os, sys, threading
from attlas.progress import load_library

def write():  # which ends the wait of whoever opens the other end
    os.close(os.open(pipe, os.O_WRONLY))

place, name = sys.argv[1:]
pipe = os.path.join(place, "lib", name)
threading.Thread(target=write).start()
print(load_library([place], name, os.RTLD_NOW))
"""
IMPORTING = """
import sys
from attlas import progress
from attlas.cli.main import main

def noted(places, name, how):
    loaded = load(places, name, how)
    print(name, loaded, "torch" in sys.modules, hasattr(sys.modules.get("torch"), "Tensor"))
    return loaded

load, progress.load_library = progress.load_library, noted
main()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only where it is done")


def run(code, *given):
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])}
    command = [sys.executable, "-c", code, *given]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=120, env=known)
    assert asked.returncode == 0, asked.stderr
    return asked.stdout.splitlines()


def test_other_threads_go_on_while_a_library_is_loaded(tmp_path):
    """A library that can be opened only once another thread has run; else this would never end."""
    (tmp_path / "lib").mkdir()
    os.mkfifo(tmp_path / "lib" / "libtorch.so")
    assert run(WAITING, str(tmp_path), "libtorch.so") == ["False"]


def test_torch_finds_its_libraries_loaded_just_before_it_loads_them():
    assert run(IMPORTING, "explain", "--json", "a good film")[:-1] == [
        "libtorch_global_deps.so True True False",
        "libtorch.so True True False",
    ]


def test_commands_without_torch_load_nothing():
    assert not any("libtorch" in line for line in run(IMPORTING, "methods"))
