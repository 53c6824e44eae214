"""The folder of a study: parts that were changed are not believed, others' files stay."""

import json

import pytest

from attlas.errors import ResultFileError, UsageError
from attlas.studies.support.run import Run, refuse_foreign_files
from attlas.studies.support.several_models import described, named


def run_in(folder):
    return Run("mine", {"seeds": 1}, folder, "cpu", lambda _: None)


def never():
    raise AssertionError("it was kept")


@pytest.fixture
def part(tmp_path):
    run_in(tmp_path).kept("one", lambda: {"a": [0.125, 3]})
    assert run_in(tmp_path).kept("one", never) == {"a": [0.125, 3]}
    (path,) = (tmp_path / "parts").iterdir()
    return path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.125", "0.625"),
        ('"a"', '"b"'),
        ('"cpu', '"cpv'),
        ('"seconds": ', '"seconds": 9'),
        ("{", ""),
    ],
)
def test_a_part_that_was_changed_is_not_believed(old, new, part, tmp_path):
    content = part.read_text("utf-8")
    assert old in content
    part.write_text(content.replace(old, new, 1))
    with pytest.raises(UsageError, match="is not a part of this study") as told:
        run_in(tmp_path).kept("one", never)
    assert "\n" not in str(told.value)


def test_a_part_of_brackets_is_one_line(part, tmp_path):
    part.write_text("[" * 100_000)
    with pytest.raises(UsageError, match="is not a part of this study"):
        run_in(tmp_path).kept("one", never)


def test_an_older_part_without_a_digest_is_read(part, tmp_path):
    record = json.loads(part.read_text("utf-8"))
    del record["digest"]
    part.write_text(json.dumps(record))
    assert run_in(tmp_path).kept("one", never) == {"a": [0.125, 3]}


def test_a_file_in_the_place_of_the_parts_is_one_line(tmp_path):
    (tmp_path / "parts").write_text("mine")
    with pytest.raises((UsageError, ResultFileError), match="a file of that name exists"):
        run_in(tmp_path).kept("one", lambda: 3)


@pytest.mark.parametrize("name", ["mine.json", "mine.md", "mine.html"])
@pytest.mark.parametrize("content", ["not JSON", "[]", '{"name": "another"}', None])
def test_files_of_others_are_left_alone(name, content, tmp_path):
    if content is None:
        (tmp_path / name).symlink_to(tmp_path / "nowhere")
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=f"{name} exists, but no study wrote it"):
        refuse_foreign_files(tmp_path, "mine")


def test_files_of_the_same_study_are_written_anew(tmp_path):
    refuse_foreign_files(tmp_path, "mine")
    (tmp_path / "mine.json").write_text('{"name": "mine"}')
    (tmp_path / "mine.html").write_text("older")
    refuse_foreign_files(tmp_path, "mine")


def test_a_model_of_train_is_known_by_its_weights(tmp_path):
    record = {"plan": {}, "files": {"model.safetensors": "abc"}}
    (tmp_path / "training.json").write_text(json.dumps(record))
    assert named(str(tmp_path)) == f"{tmp_path} of weights abc"
    assert described([str(tmp_path)]) == f"Models: {tmp_path}."


def test_a_model_without_a_record_is_known_by_its_weights_too(tmp_path):
    assert named(str(tmp_path)) == str(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"one")
    before = named(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"two")
    assert before.startswith(f"{tmp_path} of weights ") and named(str(tmp_path)) != before
