"""The verb and the command `train`: what is written, what is read again, what is refused."""

import json
from itertools import product

import pytest
from typer.testing import CliRunner

import attlas
from attlas.cli.main import commands
from attlas.errors import ModelError, ResultFileError, UnknownNameError, UsageError
from attlas.training import examples
from attlas.training import train as module
from attlas.training.examples import read_parts

GOOD = ("fine", "warm")
TEXTS = [
    (f"the {what} was {word} . {more} !", "good" if word in GOOD else "bad")
    for what, word, more in product(("film", "play", "book"), (*GOOD, "dull", "slow"), "abc")
]
QUICK = {"vector_size": 8, "epochs": 2, "rows": 8}


def test_a_model_is_trained_saved_and_opened(tmp_path):
    trained = attlas.train("bilstm", TEXTS, tmp_path / "model", dev=TEXTS, test=TEXTS, **QUICK)
    assert set(trained.test) == {"accuracy", "auc"}
    files = {path.name for path in (tmp_path / "model").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "training.json"} <= files
    assert not [name for name in files if name.endswith((".bin", ".pt", ".pkl", ".lock"))]
    assert "training.safetensors" not in files
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["texts"] == {"train": 36, "dev": 36, "test": 36} and len(record["epochs"]) == 2
    subject = attlas.load(tmp_path / "model", device="cpu")
    assert subject.labels == ["bad", "good"]
    assert subject.predict([TEXTS[0][0]]).equals(trained.subject.predict([TEXTS[0][0]]))


def test_what_was_trained_is_not_trained_again(tmp_path, monkeypatch):
    first = attlas.train("average", TEXTS, tmp_path, dev=TEXTS, **QUICK)
    monkeypatch.setattr(module, "learn", None)
    again = attlas.train("average", TEXTS, tmp_path, dev=TEXTS, **QUICK)
    assert again.record == first.record and again.lines() == first.lines()
    with pytest.raises(UsageError, match="another training: seed is 0 there and 1 here; choose"):
        attlas.train("average", TEXTS, tmp_path, dev=TEXTS, seed=1, **QUICK)


OTHERS = ("config.json", "model.safetensors", "tokenizer.json", "checkpoints")


@pytest.mark.parametrize("how", [{"model": "average"}, {"base": "shortcut_token"}])
@pytest.mark.parametrize("name", [*OTHERS, "training.json"])
def test_the_files_of_others_are_left_alone(how, name, tmp_path):
    (tmp_path / name).write_text("[]")
    with pytest.raises(UsageError, match=f"{name} exists, but no training wrote it"):
        attlas.train(data=TEXTS, out=tmp_path, epochs=1, **how)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(name, "[]")]


def test_a_damaged_checkpoint_is_told_and_the_weights_come_out_the_same(tmp_path):
    whole = attlas.train("average", TEXTS, tmp_path / "whole", dev=TEXTS, **QUICK)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "training.lock").write_text("1 on a machine")
    (tmp_path / "other" / "training.safetensors").write_bytes(b"damaged")
    again = attlas.train("average", TEXTS, tmp_path / "other", dev=TEXTS, **QUICK)
    assert whole.record["notes"] == []
    assert "training.safetensors was damaged: the training began anew" in again.lines()[0]
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "other")]
    assert files[0].read_bytes() == files[1].read_bytes()


def flip(place):
    """Change one bit of the last weight."""
    whole = bytearray(place.read_bytes())
    whole[-1] ^= 1
    place.write_bytes(whole)


@pytest.mark.parametrize("how", [{"model": "average"}, {"base": "shortcut_token"}])
def test_changed_weights_are_refused_where_they_are_loaded(how, tmp_path):
    attlas.train(data=TEXTS, out=tmp_path, dev=TEXTS, epochs=1, **how)
    attlas.load(tmp_path)
    flip(tmp_path / "model.safetensors")
    with pytest.raises(
        ModelError, match=r"model\.safetensors' is not what the training wr"
    ) as told:
        attlas.load(tmp_path)
    assert "\n" not in str(told.value) and "cannot be loaded" not in str(told.value)


def without(name):
    return lambda record: {key: each for key, each in record.items() if key != name}


RECORDS = {
    "none": lambda record: None,
    "an older one": without("files"),
    "a changed one": lambda record: {**record, "files": {"model.safetensors": "0"}},
    "one of others": lambda record: ["mine"],
}


@pytest.mark.parametrize("record", RECORDS)
def test_a_model_without_a_seal_is_loaded_as_before(record, tmp_path):
    attlas.train("average", TEXTS, tmp_path, dev=TEXTS, **QUICK)
    flip(tmp_path / "model.safetensors")
    place = tmp_path / "training.json"
    place.write_text(json.dumps(RECORDS[record](json.loads(place.read_text()))))
    assert attlas.load(tmp_path).labels == ["bad", "good"]


@pytest.mark.parametrize("content", [None, "{}", "{"])
def test_a_model_without_its_words_is_one_line(content, tmp_path):
    attlas.train("average", TEXTS, tmp_path, dev=TEXTS, **QUICK)
    place = tmp_path / "tokenizer.json"
    place.unlink() if content is None else place.write_text(content)
    with pytest.raises(ModelError, match=r"tokenizer of .* cannot be loaded: ") as told:
        attlas.load(tmp_path)
    assert "\n" not in str(told.value) and "one of" not in str(told.value)
    assert content != "{}" or "KeyError" in str(told.value)


@pytest.mark.parametrize("content", ["", "{", "[" * 100_000])
def test_a_damaged_record_is_one_line(content, tmp_path):
    (tmp_path / "training.json").write_text(content)
    with pytest.raises(ResultFileError, match=r"training\.json' cannot be read"):
        attlas.train("average", TEXTS, tmp_path, **QUICK)


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="a file of that name exists"):
        attlas.train("average", TEXTS, tmp_path / "file", **QUICK)


@pytest.mark.parametrize(
    "model", ["cnn", "flat", "flat_plain", "hierarchical", "hierarchical_cnn", "hierarchical_plain"]
)
def test_every_recipe_makes_a_model_that_is_opened(model):
    trained = attlas.train(model, TEXTS, **QUICK)
    kinds = [site.name for site in trained.subject.sites]
    assert kinds == (["encoder.0"] if model.startswith("hierarchical") else []) + ["pooling.0"]


@pytest.fixture
def few(monkeypatch):
    """Generated sets of few texts."""
    monkeypatch.setattr(examples, "ASKED", 20)


def test_questions_and_dates_are_learned(few):
    facts = attlas.train("average", "facts", count=40, attention="scaled_dot", **QUICK)
    assert facts.subject.model.config.reads == "question" and len(facts.subject.labels) == 6
    dates = attlas.train("luong", "dates", count=40, epochs=1, rows=20)
    assert set(dates.test) == {"exact match"}


def test_the_parts_of_some_data():
    parts = read_parts(TEXTS)
    assert len(parts.dev) == 4 and len(parts.train) == 32 and not parts.test
    assert not {text for text, _ in parts.train} & {text for text, _ in parts.dev}
    assert "4 of the training texts choose the epoch" in parts.notes[0]
    assert read_parts(TEXTS) == parts
    assert len(read_parts(TEXTS, dev=TEXTS, count=10).train) == 10
    with pytest.raises(UsageError, match="no label 'ugly': it has bad, good"):
        read_parts(TEXTS, labels=["ugly"])
    with pytest.raises(UsageError, match="fewer than two labels"):
        read_parts(TEXTS, labels=["good"])
    with pytest.raises(UsageError, match=r"\(1 to train on, 1 to choose the epoch by\)"):
        read_parts([("a fine film", "good"), ("a dull film", "bad")])
    for other in ("dev", "test"):
        with pytest.raises(UsageError, match="'ugly', which none of the 36 texts to train on has"):
            read_parts(TEXTS, **{"dev": TEXTS, other: [("a film", "ugly")]})


def test_training_questions_are_none_of_those_that_are_asked(few):
    parts = read_parts("facts", count=200)
    assert not {text for text, _ in parts.train} & {text for text, _ in parts.dev + parts.test}
    assert parts.reads == "question" and len(parts.train) == 200


def test_mistakes_are_told():
    with pytest.raises(UnknownNameError, match="bilstm"):
        attlas.train("bilsm", TEXTS)
    with pytest.raises(UnknownNameError, match="additive"):
        attlas.train("bilstm", TEXTS, attention="tanh")
    with pytest.raises(UsageError, match="learns dates"):
        attlas.train("luong", TEXTS)
    with pytest.raises(UsageError, match="bilstm chooses a label; dates are written: by bahdanau"):
        attlas.train("bilstm", "dates", count=20)
    with pytest.raises(UsageError, match="sentiment chooses a label"):
        attlas.train(data="dates", base="sentiment", count=20)
    with pytest.raises(UsageError, match="neither"):
        attlas.train("bilstm", TEXTS, vectors="nowhere")


def test_an_estimate_is_told():
    steps = []
    attlas.train("average", TEXTS, watch=steps.append, **QUICK)
    assert steps[0].what == "epoch 1 of 2" and steps[-1].done == steps[-1].total - 1
    assert steps[0].left is None and steps[-1].left is not None


def test_the_command(tmp_path):
    lines = "\n".join(json.dumps({"text": text, "label": label}) for text, label in TEXTS)
    (tmp_path / "texts.jsonl").write_text(lines)
    found = CliRunner().invoke(
        commands(),
        [
            *("train", "--model", "average", "--epochs", "2", "--vector-size", "8"),
            *("--data", str(tmp_path / "texts.jsonl"), "--out", str(tmp_path / "model")),
            *("--test", str(tmp_path / "texts.jsonl"), "--device", "cpu"),
        ],
    )
    told = found.stdout
    assert found.exit_code == 0, found.output
    assert "epoch 2: dev accuracy" in told and "(kept)" in told and "test (36 texts)" in told
    assert f"attlas check {tmp_path / 'model'}" in told


def test_a_dry_run_trains_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "learn", None)
    found = attlas.plan(attlas.train, "average", TEXTS, tmp_path / "model", **QUICK)
    assert found.texts == 32 and found.at_once == 8 and found.seconds > 0
    assert not (tmp_path / "model").exists()
    with pytest.raises(UnknownNameError, match="bilstm"):
        attlas.plan(attlas.train, "bilsm", TEXTS)
