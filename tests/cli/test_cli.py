"""The command line as a user meets it: the right words, one line for a mistake, its status."""

import io
import json
import os
import sys

import numpy as np
import pytest
import tiny
import torch

import attlas
from attlas.cli.explain import _position
from attlas.cli.main import COMMANDS

TEXT = "not a great film, but I could not look away"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    for task in ("sequence classification", "causal lm", "image classification", "masked lm"):
        model, processor = tiny.subject_parts(task)
        model.save_pretrained(place / task.split()[0])
        processor.save_pretrained(place / task.split()[0])
    return place


def test_explain_shows_the_prediction_and_the_words(run):
    status, out, err = run("explain", TEXT)
    assert (status, err) == (0, "")
    assert "POSITIVE" in out and "look" in out and "attn_lrp" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_explain_in_json_is_one_document(run):
    status, out, _ = run("explain", "--json", "--method", "attention-rollout", TEXT)
    record = json.loads(out)
    assert status == 0
    assert record["origin"]["method"] == "attention_rollout"
    assert len(record["scores"]) == len(record["tokens"]["texts"])


@pytest.mark.parametrize(
    ("flags", "held"), [([], True), (["--maps"], True), (["--no-maps"], False)]
)
def test_explain_holds_maps_or_not(run, tmp_path, flags, held):
    saved = tmp_path / "result.attlas"
    method = ("--method", "gradient_attention")
    status, _, err = run("explain", *method, *flags, "--save", saved, TEXT)
    assert (status, err) == (0, "")
    assert (attlas.Explanation.load(saved).maps is not None) == held


def test_explain_writes_a_page_and_saves_a_result(run, tmp_path):
    page, saved = tmp_path / "page.html", tmp_path / "result.attlas"
    status, out, _ = run("explain", "--html", page, "--save", saved, "--target", "negative", TEXT)
    assert status == 0 and str(page) in out
    assert page.read_text().startswith("<!doctype html>")
    assert attlas.Explanation.load(saved).target.name == "NEGATIVE"


def test_options_of_the_method_are_handed_on(run):
    _, out, _ = run(
        "explain", "--json", "--method", "attention_rollout", "--option", "residual=0.9", TEXT
    )
    assert json.loads(out)["origin"]["options"]["residual"] == 0.9


def test_the_text_may_come_from_standard_input(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{TEXT}\n".encode())))
    status, out, _ = run("explain", "--json", "-")
    assert status == 0 and json.loads(out)["origin"]["asked"]["text"] == TEXT


def test_a_language_model_and_a_picture_are_explained_too(run, folder, tmp_path):
    from PIL import Image

    status, out, _ = run("explain", "--model", folder / "causal", "--target", " film", "a cat sat")
    assert status == 0 and "film" in out
    Image.new("RGB", (20, 20), "red").save(tmp_path / "red.png")
    status, out, _ = run("explain", "--model", folder / "image", "--image", tmp_path / "red.png")
    assert status == 0


def test_check_and_methods(run, folder):
    status, out, _ = run("check", folder / "masked")
    assert status == 0 and out.count("yes, to the bit") == 3
    status, out, _ = run("check", "--json", folder / "causal")
    assert json.loads(out)["passed"] is True
    status, out, _ = run("methods")
    assert all(name in out for name in attlas.list_methods())
    status, out, _ = run("methods", "--json")
    assert [row["name"] for row in json.loads(out)] == attlas.list_methods()


def test_the_help_says_of_each_command_what_it_does_in_a_whole_sentence(run):
    _, out, _ = run("--help")
    listed = out.partition("Commands:")[2]
    assert all(f"  {name}  " in listed for name in COMMANDS)
    assert "..." not in listed
    assert "for your model and your texts." in " ".join(listed.split())


def test_the_version_is_printed(run):
    _, out, _ = run("--version")
    assert out == f"attlas {attlas.__version__}\n"


BY_LAYER = ("explain", "--method", "gradient_attention", "--option")
MISTAKES = {
    "unknown model": (1, ["check", "sentimant"], "unknown model 'sentimant'"),
    "unknown method": (2, ["explain", "--method", "atention_rollout", "x"], "'attention_rollout'?"),
    "unknown label": (2, ["explain", "--target", "NEGATIV", "x"], "did you mean 'NEGATIVE'?"),
    "unknown layer": (2, [*BY_LAYER, "layer=7", "x"], "layers 0 to 4"),
    "unknown option": (2, [*BY_LAYER, "layr=7", "x"], "did you mean 'layer'?"),
    "no value": (2, [*BY_LAYER, "layer", "x"], "name=value"),
    "wrong value": (2, [*BY_LAYER, "layer=top", "x"], "layer"),
    "empty text": (2, ["explain", ""], "empty"),
    "white space": (2, ["explain", " \t "], "empty"),
    "too long": (2, ["explain", "film " * 800], "--truncate"),
    "missing picture": (2, ["explain", "--image", "nothing.png"], "nothing.png"),
    "unwritable page": (2, ["explain", "--html", "/proc/none/page.html", "a film"], "/proc/none"),
    "page is a folder": (1, ["explain", "--html", "/tmp", "a film"], "/tmp"),
    "unknown device": (2, ["explain", "--device", "gpu", "x"], "allowed: cpu"),
    "no command": (2, ["explian"], "explian"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_clear_line_and_a_status(run, mistake):
    expected, arguments, message = MISTAKES[mistake]
    status, out, err = run(*arguments)
    assert status == expected
    assert message in err
    assert out == ""
    assert mistake == "no command" or (err.startswith("attlas: ") and err.count("\n") == 1)


def test_a_picture_for_a_text_model_and_a_text_for_a_picture_model(run, folder, tmp_path):
    from PIL import Image

    Image.new("RGB", (20, 20)).save(tmp_path / "black.png")
    status, _, err = run("explain", "--image", tmp_path / "black.png")
    assert (status, "reads text, not pictures" in err) == (2, True)
    status, _, err = run("explain", "--model", folder / "image", "a cat")
    assert (status, "reads pictures" in err) == (2, True)


def test_a_model_without_attention_is_refused_by_name(run, tmp_path):
    tokenizer = tiny.tokenizer("bpe")
    settings = {"vocab_size": len(tokenizer), "hidden_size": 16, "num_hidden_layers": 1}
    tiny.build("Mamba", "ForCausalLM", settings).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    for arguments in (["check", tmp_path], ["explain", "--model", tmp_path, "a cat"]):
        status, out, err = run(*arguments)
        assert (status, out) == (1, "")
        assert "MambaForCausalLM cannot be opened" in err and err.count("\n") == 1


def test_what_was_cut_is_said(run):
    status, out, _ = run("explain", "--truncate", "film " * 800)
    assert status == 0 and "cut from 802 to 512 tokens" in " ".join(out.split())


def test_weights_that_are_not_finite_are_named(run, folder, tmp_path):
    model, tokenizer = tiny.subject_parts("sequence classification")
    with torch.no_grad():
        model.classifier.bias[0] = float("inf")
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    status, out, err = run("explain", "--model", tmp_path, "a cat")
    assert (status, out) == (1, "") and "classifier.bias is not finite" in err


def test_a_failed_write_leaves_the_old_page_alone(run, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("old")
    monkeypatch.setattr(os, "replace", _no_space)
    status, _, err = run("explain", "--html", page, TEXT)
    assert status == 1 and "No space left" in err
    assert page.read_text() == "old" and list(tmp_path.iterdir()) == [page]


def _no_space(*_):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    "text",
    [
        "</script><b>",
        "naïve café",
        "映画は良かった",
        "فيلم جيد",
        "👩‍👩‍👧 film",
        "a\u202eb",
        "a\x00b",
        "\x1b[31mred",
        "e\u0301",
    ],
)
def test_text_of_every_kind_is_explained_and_shown(run, tmp_path, text):
    page = tmp_path / "page.html"
    status, out, _ = run("explain", "--html", page, text)
    assert status == 0
    assert "\x1b" not in out and "\u202e" not in out
    assert "<b>" not in page.read_text().split("application/json")[1]


TALK = [{"role": "user", "content": "the film was long"}]
TOLD = "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}"


@pytest.fixture(scope="module")
def chatty(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("chatty")
    model, words = tiny.subject_parts("causal lm")
    model.save_pretrained(place)
    words.save_pretrained(place)
    (place / "chat_template.jinja").write_text(TOLD)
    return place


@pytest.mark.parametrize("command", ["explain", "tree"])
@pytest.mark.parametrize("written", [TALK, {"messages": TALK, "tools": [{"name": "bus"}]}])
def test_messages_are_read_from_a_file(run, chatty, tmp_path, command, written):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(written))
    quick = ["--method", "raw_attention"] if command == "explain" else ["--steps", "2"]
    status, out, _ = run(command, "--model", chatty, "--messages", path, "--json", *quick)
    record = json.loads(out)
    assert status == 0
    assert record["tokens"]["sources"] == {"1 user": "the film was long"}
    assert record["origin"]["asked"]["text"] == written


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[", "cannot be read as JSON"),
        ("[1]", "holds no conversation"),
        (json.dumps([{"role": "user", "content": 3}]), "a message has a role and a content"),
    ],
)
def test_messages_that_cannot_be_read(run, tmp_path, content, told):
    path = tmp_path / "talk.json"
    path.write_text(content)
    status, _, err = run("explain", "--messages", path)
    assert status == 2 and told in err and len(err.splitlines()) == 1
    status, _, err = run("explain", "--messages", path, "a text")
    assert status == 2 and "the whole input" in err


def test_a_tokenizer_without_a_template_is_told(run, folder, tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(TALK))
    status, _, err = run("explain", "--model", folder / "causal", "--messages", path)
    assert status == 2 and "no chat template" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("given", "position"), [("3", 3), ("-2", -2), ("was", "was"), ("was 2", ("was", 2))]
)
def test_a_position_is_a_number_or_a_word(given, position):
    assert _position(given) == position


def test_several_methods_or_targets_are_compared(run, tmp_path):
    page, saved = tmp_path / "page.html", tmp_path / "result.attlas"
    asked = (
        "--method",
        "attention_rollout",
        "--method",
        "raw_attention",
        "--option",
        "residual=0.9",
    )
    status, out, err = run("explain", *asked, "--html", page, "--save", saved, TEXT)
    assert (status, err) == (0, "")
    assert "Do attention_rollout and raw_attention agree?" in out and f"wrote {page}" in out
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("wrote "))
    found = attlas.Comparison.load(saved)
    assert [each.origin.options.get("residual") for each in found.explanations] == [0.9, None]
    assert '"kind":"comparison"' in page.read_text()
    status, out, _ = run("explain", "--json", "--target", "POSITIVE", "--target", "NEGATIVE", TEXT)
    assert status == 0 and json.loads(out)["names"] == ["POSITIVE", "NEGATIVE"]


def test_several_models_or_texts_are_compared(run, folder):
    method = ("explain", "--json", "--method", "raw_attention")
    other = folder / "sequence"
    status, out, _ = run(*method, "--model", "sentiment", "--model", other, TEXT)
    found = attlas.Comparison.from_dict(json.loads(out))
    assert status == 0 and [each.origin.model for each in found.explanations] == [
        "sentiment",
        str(other),
    ]
    alone = [
        attlas.explain(attlas.load(name), TEXT, "raw_attention") for name in ("sentiment", other)
    ]
    assert np.abs(found.scores - attlas.compare(alone).scores).max() < 1e-6
    status, out, _ = run(*method, "--beside", "not a great play, but I could not look away", TEXT)
    record = json.loads(out)
    assert status == 0 and record["differs"] == "texts"
    assert record["words"][3]["texts"] == ["film", "play"]
    status, out, _ = run(*method, "--beside", "a great film", TEXT)
    assert status == 0 and json.loads(out)["agreement"][0]["words"] == 3


def test_a_second_model_that_is_not_there_is_told_before_the_first_is_loaded(run, monkeypatch):
    monkeypatch.setattr("attlas.models.load.load", None)
    status, _, err = run("explain", "--model", "sentiment", "--model", "sentimnt", TEXT)
    assert status == 1 and "sentimnt" in err and len(err.strip().splitlines()) == 1


def test_every_text_is_explained_for_every_target(run):
    asked = ("--target", "POSITIVE", "--target", "NEGATIVE", "--beside", "a cold film")
    status, out, _ = run("explain", "--json", *asked, "a warm film")
    assert status == 0 and json.loads(out)["names"] == [
        "POSITIVE · a warm film",
        "NEGATIVE · a warm film",
        "POSITIVE · a cold film",
        "NEGATIVE · a cold film",
    ]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--generate", "3"], "--generate goes with one"),
        (["--dry-run"], "--dry-run goes with one"),
        (["--beside", "another", "--pair", "x"], "--pair goes with one"),
        (["--licence"], "--licence goes with one"),
        (["--tokens"], "--tokens goes with one"),
        (["--data", "reviews", "--out", "x.parquet"], "--data goes with one"),
        (["--option", "residul=1"], "unknown option of attention_rollout 'residul'"),
    ],
)
def test_what_a_comparison_does_not_take_is_refused(run, flags, told):
    both = ("--method", "attention_rollout", "--method", "raw_attention")
    status, _, err = run("explain", *both, *flags, TEXT)
    assert status == 2 and told in err and len(err.strip().splitlines()) == 1
