"""No file is ever unpickled: nothing that Attlas reads can run code."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path
    for folder in ("src", "scripts", "benchmarks", "examples")
    for path in (ROOT / folder).rglob("*.py")
)
# Modules that unpickle what they read.
PICKLING = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
# Reads the pipes of processes that it started itself, as multiprocessing does, and no file.
OF_PIPES = {"src/attlas/engine/processes.py": ["pickle"]}
OPENING = {"open", "read_bytes", "read_text", "load"}


def dotted(node):
    """The name of what is called, `torch.load`; empty if it has none."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def is_true(call, name):
    return any(
        each.arg == name and isinstance(each.value, ast.Constant) and each.value.value is True
        for each in call.keywords
    )


def unpickles(tree):
    """The lines that could unpickle a file, and what they call."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, each.name) for each in node.names if each.name in PICKLING]
        elif isinstance(node, ast.ImportFrom) and node.module in PICKLING:
            found.append((node.lineno, node.module))
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            loads = name.endswith("torch.load") and not is_true(node, "weights_only")
            allows = is_true(node, "allow_pickle") or name.endswith(".read_pickle")
            if loads or allows:
                found.append((node.lineno, name))
    return found


@pytest.mark.parametrize("folder", ["src", "scripts", "benchmarks", "examples"])
def test_no_file_of_ours_unpickles(folder):
    own = [path for path in FILES if path.is_relative_to(ROOT / folder)]
    found = {
        str(path.relative_to(ROOT)): unpickles(ast.parse(path.read_text("utf-8"))) for path in own
    }
    called = {name: [each for _, each in lines] for name, lines in found.items() if lines}
    assert own and called == {name: OF_PIPES[name] for name in called if name in OF_PIPES}


def test_what_reads_pipes_opens_no_file():
    for name in OF_PIPES:
        tree = ast.parse((ROOT / name).read_text("utf-8"))
        called = [dotted(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        assert not [each for each in called if each.split(".")[-1] in OPENING]


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import load",
        "import torch; torch.load('a.bin')",
        "import torch; torch.load('a.bin', weights_only=False)",
        "import numpy as np; np.load('a.npz', allow_pickle=True)",
        "import pandas as pd; pd.read_pickle('a')",
        "from joblib import load",
    ],
)
def test_each_way_to_unpickle_is_seen(line):
    assert unpickles(ast.parse(line))


def test_what_unpickles_nothing_is_let_through():
    assert not unpickles(ast.parse("torch.load('a', weights_only=True); np.load('a.npz')"))
