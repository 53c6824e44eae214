"""An audit of a copy that has learned masked words: the copy, its name, and the command."""

import json

import pytest
import torch
from learners import TEXTS, classifier, tokens
from typer.testing import CliRunner

import attlas
from attlas.cli.main import commands
from attlas.errors import UsageError
from attlas.training.finetune import masked_copy


@pytest.fixture
def base(tmp_path):
    place = tmp_path / "base"
    classifier().save_pretrained(place)
    tokens().save_pretrained(place)
    return place


def test_the_copy_learns_and_the_model_stays(base, tmp_path):
    subject = attlas.load(base, device="cpu")
    before = {name: each.clone() for name, each in subject.model.state_dict().items()}
    copy = masked_copy(subject, TEXTS, tmp_path / "copy")
    assert attlas.load(copy.name, device="cpu").labels == subject.labels
    own, other = subject.model.state_dict(), copy.model.state_dict()
    assert all(torch.equal(each, before[name]) for name, each in own.items())
    assert not all(torch.equal(each, other[name]) for name, each in own.items())
    record = json.loads((tmp_path / "copy" / "training.json").read_text())
    assert record["objectives"] == ["masked:weight=1.0"]


def test_labels_must_be_those_of_the_model(base):
    with pytest.raises(UsageError, match="other labels"):
        masked_copy(attlas.load(base, device="cpu"), [(text, f"is {it}") for text, it in TEXTS])


def test_the_command_audits_the_copy(base, tmp_path):
    data = tmp_path / "texts.jsonl"
    data.write_text("\n".join(json.dumps({"text": t, "label": each}) for t, each in TEXTS))
    asked = [
        *("audit", "--model", str(base), "--data", str(data), "--masked-finetune", str(data)),
        *("--method", "raw_attention", "--measure", "location", "--trial", "none", "--count", "4"),
        *("--device", "cpu", "--workers", "1", "--json"),
    ]
    found = CliRunner().invoke(commands(), [*asked, "--out", str(tmp_path / "audit")])
    assert found.exit_code == 0, found.output
    place = tmp_path / "audit_masked_model"
    assert json.loads(found.stdout)["model"] == str(place)
    assert (place / "model.safetensors").is_file()
    refused = CliRunner().invoke(commands(), asked)
    assert "--masked-finetune needs --out" in str(refused.exception)
