"""Folders of models that are damaged or hostile: loaded, or one line; no code of theirs runs."""

import json
import os
import pickle
import shutil

import numpy as np
import pytest
import tiny
from campaigning import times

import attlas
from attlas.errors import AttlasError

MODELS = times(120, 24)
TEXT = "the film was not good"
VALUES = [
    *(None, True, -1, 0, 7, 10**12, 1e308, "", "x" * 5000, "../../etc", "\x1b[2J", "\ud800"),
    *([], {}, [[]], {"a": {}}, ["pipeline"], "__import__('os').abort()", "own.py", "trap--own.Own"),
]


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, sign):
        self.sign = sign

    def __reduce__(self):
        return os.mkdir, (str(self.sign),)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "sound"
    for part in tiny.subject_parts("sequence classification"):
        part.save_pretrained(folder)
    return folder


def places(record, here=()):
    """Where a record of JSON has values, as the keys that lead there."""
    pairs = record.items() if isinstance(record, dict) else enumerate(record)
    for key, value in pairs:
        yield (*here, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*here, key))


def change_json(path, random):
    """Put something absurd into a file of JSON, at a random place."""
    record = json.loads(path.read_text("utf-8"))
    known = list(places(record))
    *way, last = known[random.integers(len(known))]
    inner = record
    for key in way:
        inner = inner[key]
    inner[last] = VALUES[random.integers(len(VALUES))]
    path.write_text(json.dumps(record))


def flip(path, random):
    content = bytearray(path.read_bytes())
    for _ in range(8):
        content[random.integers(len(content))] ^= 1 << int(random.integers(8))
    path.write_bytes(content)


def cut(path, random):
    path.write_bytes(path.read_bytes()[: random.integers(path.stat().st_size)])


def damage(folder, random):
    """Change one file of a folder in one of several ways."""
    files = sorted(folder.iterdir())
    texts = [path for path in files if path.suffix == ".json"]
    way = (change_json, change_json, flip, cut)[random.integers(4)]
    chosen = texts if way is change_json else files
    way(chosen[random.integers(len(chosen))], random)


def set_traps(folder, sign, random):
    """Pickled weights, code beside the model, and a configuration that names it."""
    for name in ("pytorch_model.bin", "model.bin", "training_args.bin", "tokenizer.pkl"):
        (folder / name).write_bytes(pickle.dumps(Trap(sign)))
    for name in ("own.py", "modeling_own.py", "tokenization_own.py", "configuration_own.py"):
        (folder / name).write_text(f"import os\nos.mkdir({str(sign)!r})\nclass Own: pass\n")
    if random.integers(2):
        own = {"AutoModelForSequenceClassification": "own.Own", "AutoConfig": "own.Own"}
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "auto_map": own}))
    if not random.integers(3):
        (folder / "model.safetensors").unlink()


def try_model(folder):
    own = attlas.load(folder)
    own.predict([TEXT])
    attlas.explain(own, TEXT, "gradient_attention")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_hostile_model_is_refused_in_one_line_and_runs_nothing(sound, tmp_path):
    random, refused, wrong = np.random.default_rng(0), 0, []
    sign = tmp_path / "code ran"
    try_model(sound)
    for number in range(MODELS):
        folder = shutil.copytree(sound, tmp_path / f"model{number}")
        if number % 3 == 0:
            set_traps(folder, sign, random)
        damage(folder, random)
        try:
            try_model(folder)
        except AttlasError as problem:
            refused += 1
            if "\n" in str(problem) or len(str(problem)) > 2_000:
                wrong.append((number, str(problem)))
        except Exception as problem:
            wrong.append((number, repr(problem)[:500]))
        assert not sign.exists(), number
        shutil.rmtree(folder)
    assert wrong == []
    assert 0 < refused < MODELS
