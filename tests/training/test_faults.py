"""What is damaged, foreign or absurd: training begins anew, or says so in one line."""

import json
import os
import pickle
import re
import resource
from itertools import product

import pytest
import torch
from learners import classifier, tokens
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import attlas
from attlas.errors import AttlasError, ModelError, ResultFileError, UsageError
from attlas.models.recurrent import fitting
from attlas.training import finetune

TEXTS = [
    (f"the {what} was {word} . {more} !", "good" if word in ("fine", "warm") else "bad")
    for what, word, more in product(("film", "play"), ("fine", "warm", "dull", "slow"), "abc")
]
QUICK = {"epochs": 3, "rows": 8, "device": "cpu"}


def train(out=None, **how):
    return attlas.train("average", TEXTS, out, vector_size=8, **{**QUICK, **how})


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    place = tmp_path_factory.mktemp("base")
    classifier().save_pretrained(place)
    tokens().save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def whole():
    return train()


def same(one, other):
    states = one.subject.model.state_dict(), other.subject.model.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def stopped_after_an_epoch(module, name, monkeypatch, work):
    """Run some training that is stopped when its first epoch is written."""
    real = getattr(module, name)

    def stop(*given):
        real(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, name, stop)
        with pytest.raises(KeyboardInterrupt):
            work()


CHANGES = {
    "another epoch": lambda record: {**record, "epoch": 2},
    "other figures": lambda record: {**record, "figures": [{"auc": 9.0}]},
    "no figures": lambda record: {"plan": record["plan"]},
    "a list": lambda record: [],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_record_of_a_checkpoint_is_not_believed(change, tmp_path, whole, monkeypatch):
    stopped_after_an_epoch(fitting, "write_checkpoint", monkeypatch, lambda: train(tmp_path))
    place = tmp_path / "training.safetensors"
    with safe_open(place, "pt") as file:
        said = file.metadata()
    record = json.dumps(CHANGES[change](json.loads(said["record"])))
    save_file(load_file(place), place, metadata={**said, "record": record})
    again = train(tmp_path)
    assert same(again, whole) and again.record["epochs"] == whole.record["epochs"]


def test_a_folder_in_the_place_of_a_checkpoint_is_one_line(tmp_path, monkeypatch):
    stopped_after_an_epoch(fitting, "write_checkpoint", monkeypatch, lambda: train(tmp_path))
    (tmp_path / "training.safetensors").unlink()
    (tmp_path / "training.safetensors").mkdir()
    with pytest.raises(ResultFileError, match=r"cannot write .*training\.safetensors"):
        train(tmp_path)
    assert not (tmp_path / "training.safetensors.new").exists()


def test_a_training_that_goes_on_says_so(tmp_path, whole, monkeypatch, capsys):
    stopped_after_an_epoch(fitting, "write_checkpoint", monkeypatch, lambda: train(tmp_path))
    assert "attlas:" not in capsys.readouterr().err
    assert same(train(tmp_path), whole)
    told = f"attlas: the training in {tmp_path} goes on after epoch 1 of 3"
    assert capsys.readouterr().err.splitlines()[0] == told


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"rate": 0.5}, "rate is 0.001 there and 0.5 here"),
        ({"objectives": "conicity"}, 'objectives is not given there and ["conicity'),
    ],
)
def test_a_training_that_was_stopped_is_not_another(other, told, tmp_path, monkeypatch):
    stopped_after_an_epoch(fitting, "write_checkpoint", monkeypatch, lambda: train(tmp_path))
    with pytest.raises(UsageError, match=f"holds another training: {re.escape(told)}"):
        train(tmp_path, **other)


def test_a_full_disk_is_one_line_and_training_goes_on_later(tmp_path, whole):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
    try:
        with pytest.raises(ResultFileError, match="cannot write") as told:
            train(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(told.value)
    assert same(train(tmp_path), whole)


@pytest.mark.parametrize("room", [3_000, 30_000, 60_000])
def test_a_full_disk_is_one_line_for_a_transformer_too(base, tmp_path, room):
    how = {"epochs": 1, "rows": 12, "device": "cpu", "base": base, "out": tmp_path / "m"}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with pytest.raises(ResultFileError, match="cannot write") as told:
            attlas.train(data=TEXTS, **how)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(told.value)
    assert attlas.train(data=TEXTS, **how).record["best"] == 0


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The files of a finished training."""
    folder = tmp_path_factory.mktemp("trained") / "model"
    train(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def finished(trained, tmp_path):
    for name, content in trained.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
@pytest.mark.parametrize("change", [lambda content: content[:-1] + b"\x00", None])
def test_a_model_that_was_changed_since_is_not_returned(name, change, finished):
    content = (finished / name).read_bytes()
    (finished / name).unlink()
    if change is not None:
        (finished / name).write_bytes(change(content))
    with pytest.raises(ResultFileError, match="is not what the training wrote"):
        train(finished)


@pytest.mark.parametrize("field", [{"epochs": 7}, {"test": "x"}, {"notes": None}, {"best": 0.5}])
def test_figures_that_were_changed_are_not_believed(field, finished):
    record = json.loads((finished / "training.json").read_text())
    (finished / "training.json").write_text(json.dumps({**record, **field}))
    with pytest.raises(ResultFileError, match=r"training\.json.* is not what the training wrote"):
        train(finished)


def test_no_lock_stays_beside_a_model_that_is_read_again(finished):
    before = sorted(os.listdir(finished))
    assert train(finished).record["epochs"]
    assert sorted(os.listdir(finished)) == before


def write(name, content):
    def change(checkpoint):
        (checkpoint / name).write_bytes(content)
        (checkpoint / "digests.json").unlink()

    return change


class Trap:
    def __reduce__(self):
        return os.mkdir, ("trap",)


def another(checkpoint):
    (checkpoint.parent / "checkpoint-mine").mkdir()
    (checkpoint.parent / "checkpoint-mine" / "trainer_state.json").write_text("{}")


OF_TRAINER = {
    "no checkpoint": write("trainer_state.json", b"[]"),
    "brackets": write("trainer_state.json", b"[" * 100_000),
    "cut": write("optimizer.pt", b"123"),
    "a trap": write("rng_state.pth", pickle.dumps(Trap())),
    "a seal of brackets": lambda place: (place / "digests.json").write_text("[" * 100_000),
    "another name": another,
}


@pytest.mark.parametrize("change", OF_TRAINER)
def test_a_checkpoint_that_is_not_sealed_is_not_gone_on_from(change, base, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    how = {"base": base, "data": TEXTS, "out": tmp_path / "model", **QUICK, "epochs": 2}
    stopped_after_an_epoch(finetune, "seal_checkpoint", monkeypatch, lambda: attlas.train(**how))
    (checkpoint,) = (tmp_path / "model" / "checkpoints").glob("checkpoint-*")
    OF_TRAINER[change](checkpoint)
    assert len(attlas.train(**how).record["epochs"]) == 2
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_checkpoints_of_others_are_left_alone(kind, base, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "training.lock").touch()  # of a training that was stopped
    place = tmp_path / "model" / "checkpoints"
    if kind == "link":
        (tmp_path / "mine").mkdir()
        place.symlink_to(tmp_path / "mine")
    else:
        place.write_text("mine")
    with pytest.raises(UsageError, match="no training wrote it"):
        attlas.train(base=base, data=TEXTS, out=tmp_path / "model", **QUICK)
    assert not list((tmp_path / "mine").glob("*"))


ABSURD = [
    *({"rate": float("nan")}, {"rate": float("inf")}, {"patience": -1}),
    *({"seed": -1}, {"seed": 2**64}, {"count": -1}, {"longest": -1}, {"labels": []}),
]


@pytest.mark.parametrize("given", [*ABSURD, {"vector_size": -1}], ids=str)
def test_absurd_numbers_are_one_line(given, base):
    with pytest.raises(UsageError) as told:
        attlas.train(**{"model": "average", "data": TEXTS, "vector_size": 8, **QUICK, **given})
    assert "\n" not in str(told.value)
    if "vector_size" not in given:
        with pytest.raises(UsageError):
            attlas.train(base=base, data=TEXTS, **{**QUICK, **given})


def test_weights_that_are_no_numbers_are_no_result(base, tmp_path, monkeypatch):
    def spoil(model, *_):
        with torch.no_grad():
            next(model.parameters()).fill_(float("nan"))

    monkeypatch.setattr(fitting, "train_epoch", spoil)
    with pytest.raises(ModelError, match="is not finite; try a lower rate"):
        train(tmp_path / "model")
    assert not (tmp_path / "model" / "model.safetensors").exists()
    with pytest.raises(AttlasError, match="is not finite"):
        attlas.train(base=base, data=TEXTS, objectives="conicity:weight=1e300", **QUICK)
