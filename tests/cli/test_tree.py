"""The command `tree`."""

import json

import pytest

from attlas.results import Tree

TEXT = "not a great film, but I could not look away"


def test_tree_shows_the_edges_and_writes_what_is_asked_for(run, tmp_path):
    files = {name: tmp_path / f"tree.{name}" for name in ("svg", "html", "safetensors")}
    status, out, err = run(
        "tree", TEXT, "--steps", 4, "--lambda", 0.01, "--svg", files["svg"],
        "--html", files["html"], "--save", files["safetensors"],
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert "[CLS]" in out and "layer" in out and "edge" in out
    assert all(f"wrote {path}" in out.replace("\n", "") for path in files.values())
    assert files["svg"].read_text().startswith("<svg") and files["html"].exists()
    assert Tree.load(files["safetensors"]).lambda_ == 0.01


def test_tree_in_json_is_one_document(run):
    status, out, _ = run("tree", TEXT, "--steps", 4, "--tau", 0.3, "--json")
    record = json.loads(out)
    assert status == 0
    assert record["origin"]["options"]["tau"] == 0.3
    assert all(edge["attribution"] > 0 for edge in record["edges"])


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["tree", TEXT, "--tau", 3], "between 0 and 1", 2),
        (["tree", TEXT, "--svg", "tree.gif", "--steps", 1], "ends in .svg", 2),
        (["tree", "-m", "dates", "3 May 2001"], "several: encoder, decoder, cross", 1),
    ],
)
def test_a_mistake_is_one_line(run, arguments, message, status):
    actual, out, err = run(*arguments)
    assert (actual, out) == (status, "")
    assert message in err and err.count("\n") == 1
