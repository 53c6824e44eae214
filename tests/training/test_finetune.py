"""`train` with a base: what is written, read again, resumed and refused."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import product

import pytest
import torch
import transformers
from learners import classifier, tokens
from typer.testing import CliRunner

import attlas
from attlas.cli.main import commands
from attlas.errors import ModelError, ResultFileError, UnsupportedModelError, UsageError
from attlas.training import finetune as module
from attlas.training.examples import Parts

GOOD = ("fine", "warm")
TEXTS = [
    attlas.Example(f"the {what} was {word} {more}", "good" if word in GOOD else "bad", ((13, 17),))
    for what, word, more in product(("film", "play", "book"), (*GOOD, "dull", "slow"), "abcd")
]
QUICK = {"epochs": 2, "rows": 8, "rate": 0.01, "device": "cpu"}
AIMS = ["rationale:weight=0.5,layer=-1", "masked:weight=0.2"]


@pytest.fixture
def base(tmp_path):
    place = tmp_path / "base"
    classifier().save_pretrained(place)
    tokens().save_pretrained(place)
    return place


def test_a_model_is_trained_written_and_opens_in_plain_transformers(base, tmp_path):
    steps, out = [], tmp_path / "better"
    trained = attlas.train(
        base=base, data=TEXTS, out=out, test=TEXTS, objectives=AIMS, watch=steps.append, **QUICK
    )
    assert set(trained.test) == {"accuracy", "auc"} and len(trained.record["epochs"]) == 2
    assert trained.lines()[-1].startswith("test (48 texts): accuracy")
    assert steps[-1].done == steps[-1].total and steps[-1].left is not None
    files = {path.name for path in out.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "training.json"} <= files
    assert not [name for name in files if name.endswith((".bin", ".pt", ".lock", "checkpoints"))]
    for name in files - {"training.json"}:
        assert b"attlas" not in (out / name).read_bytes().lower()
    plain = transformers.AutoModelForSequenceClassification.from_pretrained(out)
    own = trained.subject.model
    assert all(torch.equal(one, own.state_dict()[name]) for name, one in plain.state_dict().items())
    assert attlas.load(out, device="cpu").labels == ["bad", "good"]


ELSEWHERE = """
import sys
sys.modules["attlas"] = None  # as where it is not installed
from transformers import pipeline
print(pipeline("text-classification", {out!r})("the film was fine")[0]["label"])
"""


def test_the_model_opens_where_attlas_is_not(base, tmp_path):
    out = tmp_path / "better"
    attlas.train(base=base, data=TEXTS, out=out, objectives=AIMS, **{**QUICK, "epochs": 1})
    code = ELSEWHERE.format(out=str(out))
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split()[-1] in ("good", "bad")


def test_what_was_trained_is_not_trained_again(base, tmp_path, monkeypatch):
    first = attlas.train(base=base, data=TEXTS, out=tmp_path / "m", **QUICK)
    monkeypatch.setattr(module, "begin_from", None)
    again = attlas.train(base=base, data=TEXTS, out=tmp_path / "m", **QUICK)
    assert again.record == first.record
    differs = 'another training: objectives.1 is not given there and "rationale:'
    with pytest.raises(UsageError, match=differs):
        attlas.train(base=base, data=TEXTS, out=tmp_path / "m", objectives=AIMS, **QUICK)


def test_a_model_without_a_head_gets_one_for_the_labels_of_the_data(base, tmp_path):
    bare = transformers.BertModel(classifier().config)
    bare.save_pretrained(tmp_path / "bare")
    tokens().save_pretrained(tmp_path / "bare")
    other = [attlas.Example(each.text, f"is {each.label}") for each in TEXTS]
    for place in (base, tmp_path / "bare"):
        trained = attlas.train(base=place, data=other, **QUICK)
        assert trained.subject.labels == ["is bad", "is good"]


def test_training_stops_early(base):
    slow = {**QUICK, "epochs": 8, "rate": 1e-9}
    trained = attlas.train(base=base, data=TEXTS, patience=1, **slow)
    assert len(trained.record["epochs"]) == 2 and trained.record["best"] == 0


def test_a_training_that_was_stopped_goes_on_to_the_same_weights(base, tmp_path, capsys):
    whole = attlas.train(base=base, data=TEXTS, out=tmp_path / "whole", objectives=AIMS, **QUICK)

    class Stop(BaseException):
        pass

    def stop(step):
        if step.done > step.total // 2 + 1:
            raise Stop

    with pytest.raises(Stop):
        attlas.train(
            base=base, data=TEXTS, out=tmp_path / "cut", objectives=AIMS, watch=stop, **QUICK
        )
    # A checkpoint that was not written to its end is left alone.
    broken = tmp_path / "cut" / "checkpoints" / "checkpoint-999"
    broken.mkdir()
    (broken / "trainer_state.json").write_text("{")
    with pytest.raises(UsageError, match=r"another training: rate is 0\.01 there and 0\.02 here"):
        attlas.train(base=base, data=TEXTS, out=tmp_path / "cut", **{**QUICK, "rate": 0.02})
    begun = []
    again = attlas.train(
        base=base,
        data=TEXTS,
        out=tmp_path / "cut",
        objectives=AIMS,
        watch=lambda step: begun.append(step.done),
        **QUICK,
    )
    assert min(begun) > 1, "it began anew"
    told = f"attlas: the training in {tmp_path / 'cut'} goes on after epoch 1 of 2"
    assert told in capsys.readouterr().err.splitlines()
    assert again.record["epochs"] == whole.record["epochs"]
    one, other = ((tmp_path / out / "model.safetensors").read_bytes() for out in ("whole", "cut"))
    assert one == other


@pytest.mark.parametrize("room", [3000, "as much as the weights take"])
def test_a_full_disk_is_one_line_and_training_goes_on_later(base, tmp_path, room):
    def train(name):
        return attlas.train(base=base, data=TEXTS, out=tmp_path / name, **QUICK)

    weights = (base / "model.safetensors").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = room if room == 3000 else weights + 4000
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(ResultFileError, match=r"cannot write .* goes on from") as told:
            train("cut")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "\n" not in str(told.value)
    train("cut"), train("whole")
    one, other = ((tmp_path / out / "model.safetensors").read_bytes() for out in ("whole", "cut"))
    assert one == other


def test_the_command(base, tmp_path):
    rows = [{"text": each.text, "label": each.label, "why": [[13, 17]]} for each in TEXTS]
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    asked = [
        *("train", "--base", str(base), "--data", str(tmp_path / "texts.jsonl")),
        *("--spans", "why", "--epochs", "1", "--rate", "0.01", "--device", "cpu"),
        *("--objective", "rationale:weight=0.5,layer=-1", "--objective", "masked:weight=0.1"),
    ]
    found = CliRunner().invoke(commands(), [*asked, "--out", str(tmp_path / "better")])
    assert found.exit_code == 0, found.output
    assert "epoch 1: dev accuracy" in found.stdout and "(kept)" in found.stdout
    record = json.loads((tmp_path / "better" / "training.json").read_text())
    assert record["objectives"] == ["rationale:weight=0.5,layer=-1", "masked:weight=0.1"]
    planned = CliRunner().invoke(
        commands(), [*asked, "--out", str(tmp_path / "other"), "--dry-run"]
    )
    assert planned.exit_code == 0 and "43 texts" in " ".join(planned.output.split())
    assert not (tmp_path / "other").exists()


def test_mistakes_are_told(base, tmp_path):
    with pytest.raises(UsageError, match="rationale needs texts with marked words"):
        plain = [(each.text, each.label) for each in TEXTS]
        attlas.train(base=base, data=plain, objectives="rationale", **QUICK)
    attlas.train("average", [(each.text, each.label) for each in TEXTS], tmp_path / "r", epochs=1)
    with pytest.raises(UnsupportedModelError, match="is no transformer"):
        attlas.train(base=tmp_path / "r", data=TEXTS, **QUICK)


def test_a_mistake_that_ended_a_training_at_once_can_be_mended_in_its_folder(base, tmp_path):
    how = {"base": base, "data": TEXTS, "out": tmp_path / "m", **QUICK, "epochs": 1}
    with pytest.raises(UsageError, match="layer of conicity is a whole number"):
        attlas.train(objectives="conicity:layer=7", **how)
    again = attlas.train(objectives="conicity:layer=1", **how)
    assert again.record["objectives"] == ["conicity:weight=1.0,layer=1"]


def test_texts_are_cut_to_what_the_model_reads(base, tmp_path):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        base, max_position_embeddings=12, ignore_mismatched_sizes=True
    )
    model.save_pretrained(tmp_path / "short")
    tokens().save_pretrained(tmp_path / "short")
    longer = [replace(each, text=f"{each.text} {'and so on ' * 9}") for each in TEXTS]
    trained = attlas.train(base=tmp_path / "short", data=longer, test=longer, **QUICK)
    assert trained.test["accuracy"] >= 0


def test_texts_that_are_only_asked_about_are_asked_by_length(tmp_path):
    longer = [(f"{each.text} {'and so on ' * (n % 5)}", each.label) for n, each in enumerate(TEXTS)]
    given = Parts(longer, longer, [], "texts")
    made = module.make_trainer(
        classifier(), tokens(), given, module.USUAL, (), tmp_path, None, torch.device("cpu"), None
    )
    parts = made.train_dataset, made.eval_dataset
    taught, asked = ([len(each["input_ids"]) for each in part] for part in parts)
    assert asked == sorted(taught) and taught != asked


FROM_RECURRENT = """
import attlas
try:
    attlas.train(base={base!r}, data={texts!r})
except attlas.errors.UnsupportedModelError as problem:
    print(problem)
"""


def test_a_recurrent_model_is_refused_by_name_in_a_process_that_knows_none(tmp_path):
    texts = [(each.text, each.label) for each in TEXTS]
    attlas.train("average", texts, tmp_path / "r", epochs=1)
    code = FROM_RECURRENT.format(base=str(tmp_path / "r"), texts=texts)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "is no transformer: train it anew by --model" in found.stdout, found.stderr


def test_a_base_that_cannot_be_read_says_why(base, tmp_path):
    def told(place):
        with pytest.raises(ModelError) as found:
            attlas.train(base=place, data=TEXTS, **QUICK)
        return str(found.value)

    assert "unknown model 'someone/nothing'" in told("someone/nothing")
    whole = (base / "model.safetensors").read_bytes()
    (base / "model.safetensors").write_bytes(whole[:500])
    assert "cannot be loaded" in told(base)
    (base / "model.safetensors").unlink()
    torch.save(classifier().state_dict(), base / "pytorch_model.bin")
    assert told(base).endswith(
        "has no safetensors weights; pickled ones can run code when they are read: convert them"
    )
    (base / "model.safetensors").write_bytes(whole)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (base / name).unlink()
    assert "tokenizer" in told(base)


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from training.test_finetune import AIMS, QUICK, TEXTS
import attlas
how = QUICK | dict(epochs=6)
attlas.train(base={base!r}, data=TEXTS, out={out!r}, objectives=AIMS, **how)
"""


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_weights(base, tmp_path):
    def started(out):
        tests = os.path.dirname(os.path.dirname(__file__))
        code = KILLED.format(tests=tests, base=str(base), out=str(tmp_path / out))
        return subprocess.Popen([sys.executable, "-c", code])

    def written():
        return len(list((tmp_path / "killed" / "checkpoints").glob("*/trainer_state.json")))

    assert started("whole").wait() == 0
    process = started("killed")
    while not written():
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert started("killed").wait() == 0
    places = [tmp_path / out / "model.safetensors" for out in ("whole", "killed")]
    one, other = (place.read_bytes() for place in places)
    assert one == other
