"""A finished audit that was changed: it is done again or refused, and never believed."""

import json
from hashlib import sha256

import pytest
import torch
import transformers
from audits import SMALLEST, bag_texts, small_audit, without_times
from known_models import bag_of_words
from tiny import subject_parts

import attlas
from attlas.auditing.folder import Folder
from attlas.errors import UsageError
from attlas.models.facts.fingerprint import identity
from attlas.results.support.files import digest_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of the files of a finished audit, and its report."""
    folder = tmp_path_factory.mktemp("audits") / "audit"
    report = small_audit(out=folder, **SMALLEST)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}, report


@pytest.fixture
def finished(whole, tmp_path):
    folder = tmp_path / "audit"
    (folder / "parts").mkdir(parents=True)
    for name, content in whole[0].items():
        (folder / name).write_bytes(content)
    return folder


def asked_again(folder):
    return small_audit(out=folder, **SMALLEST)


def believed(record):
    """The record of a report with another answer."""
    changed = json.loads(record)
    word = changed["verdict"]["word"]
    changed["verdict"]["word"] = "supported" if word != "supported" else "not supported"
    return json.dumps(changed).encode()


CHANGES = {
    "emptied": lambda content: b"",
    "edited": believed,
    "another": lambda content: b"[]",
    "cut": lambda content: content[: len(content) // 2],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_report_is_made_again(change, finished, whole):
    path = finished / "report.json"
    path.write_bytes(CHANGES[change](path.read_bytes()))
    assert without_times(asked_again(finished)) == without_times(whole[1])
    assert json.loads(path.read_bytes())["verdict"]["word"] == whole[1].verdict.word
    assert without_times(asked_again(finished)) == without_times(whole[1])


@pytest.mark.parametrize("content", ["[]", "[" * 100_000], ids=["a list", "brackets"])
def test_a_forged_report_whose_digest_is_right_is_made_again(content, finished, whole):
    (finished / "report.json").write_text(content)
    said = json.loads((finished / "manifest.json").read_text())
    said["files"]["report.json"] = sha256(content.encode()).hexdigest()
    del said["digest"]
    (finished / "manifest.json").write_text(json.dumps({**said, "digest": digest_of(said)}))
    assert without_times(asked_again(finished)) == without_times(whole[1])
    assert json.loads((finished / "report.json").read_text())["verdict"]["word"]


@pytest.mark.parametrize("name", ["report.html", "results.parquet"])
@pytest.mark.parametrize("change", [lambda path: path.unlink(), lambda path: path.write_text("x")])
def test_files_beside_the_report_are_written_again(change, name, finished, whole):
    change(finished / name)
    assert without_times(asked_again(finished)) == without_times(whole[1])
    content = (finished / name).read_bytes()
    assert len(content) > 1000
    if name == "report.html":
        assert content == whole[0][name]


def test_tables_that_a_killed_run_left_behind_are_removed(finished):
    left = finished / "parts" / "values 00000.parquet"
    left.write_bytes(b"PAR1")
    asked_again(finished)
    assert not left.exists()


def test_an_untouched_folder_is_not_worked_on(finished, monkeypatch):
    monkeypatch.setattr(Folder, "write", None)
    asked_again(finished)


def audited(subject, folder):
    return small_audit(subject, bag_texts(4), out=folder, **SMALLEST)


def test_another_configuration_is_another_model(tmp_path):
    model, tokenizer = subject_parts("sequence classification")
    other = transformers.BertConfig(**{**model.config.to_dict(), "num_attention_heads": 1})
    twin = type(model)(other).eval()
    twin.load_state_dict(model.state_dict())
    one, two = (attlas.Subject(each, tokenizer, name="same") for each in (model, twin))
    assert identity(one)["weights"] == identity(two)["weights"]
    assert identity(one)["configuration"] != identity(two)["configuration"]
    audited(one, tmp_path)
    with pytest.raises(UsageError, match="configuration is"):
        audited(two, tmp_path)


def test_another_tokenizer_and_other_libraries_are_seen(tmp_path, monkeypatch):
    own = bag_of_words()
    audited(own, tmp_path)
    audited(bag_of_words(), tmp_path)  # made anew, it is the same
    own.predict("some words")  # what a call leaves in a tokenizer does not count
    audited(own, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "9.9")
        with pytest.raises(UsageError, match=r"versions\.torch is .* and \"9\.9\" here"):
            audited(own, tmp_path)
    own.tokenizer.add_tokens(["quite new"])
    with pytest.raises(UsageError, match="tokenizer is"):
        audited(own, tmp_path)
