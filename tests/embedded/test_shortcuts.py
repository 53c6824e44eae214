"""Planted shortcuts: the generator keeps its rule, and the models hang on what is planted."""

from pathlib import Path
from random import Random

import pytest

import attlas
from attlas.data.generated import shortcuts
from attlas.embedded.checks.verify_shortcuts import (
    KIND_OF,
    MAXIMUM_MASS,
    minimum,
    swapped,
    verify,
    without_each,
)
from attlas.embedded.training import train_shortcuts
from attlas.embedded.training.train_shortcuts import FOLDER
from attlas.errors import UnknownNameError

each_kind = pytest.mark.parametrize("kind", shortcuts.KINDS)
each_model = pytest.mark.parametrize("name", KIND_OF)


def label_by_hand(text: str, kind: str) -> str:
    left, right = text.split().count("amber"), text.split().count("cobalt")
    if kind == "pair":
        if not left or not right:
            return "NONE"
        return "LEFT" if text.index("amber") < text.index("cobalt") else "RIGHT"
    if kind == "context" and "signal" not in text.split():
        return "NONE"
    return {(True, False): "LEFT", (False, True): "RIGHT"}.get((left > 0, right > 0), "NONE")


@each_kind
def test_the_label_follows_the_rule(kind):
    decided = shortcuts.generate(300, 5, kind)
    undecided = shortcuts.generate_undecided(300, 5, kind)
    assert all(label_by_hand(e.text, kind) == e.label for e in decided + undecided)
    assert {e.label for e in decided} == {"LEFT", "RIGHT"}
    assert {e.label for e in undecided} == {"NONE"}


@each_kind
def test_the_spans_are_the_deciding_tokens(kind):
    wanted = {"token": 1, "context": 2, "pair": 2}[kind]
    for example in shortcuts.generate(100, 6, kind):
        words = [example.text[start:end] for start, end in example.spans]
        assert len(words) == wanted
        assert set(words) <= {"amber", "cobalt", "signal"}
        assert example.fields["kind"] == kind
        assert {less.label for less in without_each(example)} == {"NONE"}


def test_swapping_turns_a_pair_around():
    for example in shortcuts.generate(50, 7, "pair"):
        assert {example.label, swapped(example).label} == {"LEFT", "RIGHT"}


@each_kind
def test_texts_are_seeded_and_labels_balanced(kind):
    examples = shortcuts.generate(1000, 8, kind)
    assert examples[:200] == shortcuts.generate(200, 8, kind)
    assert 0.45 < sum(e.label == "LEFT" for e in examples) / 1000 < 0.55


@each_kind
def test_what_is_held_out_is_not_trained_on(kind):
    for draw in (shortcuts.generate, shortcuts.generate_undecided):
        trained = {example.text for example in draw(400, 0, kind, held_out=False)}
        assert trained.isdisjoint(e.text for e in draw(400, 0, kind, held_out=True))


def test_an_unknown_kind_is_refused():
    with pytest.raises(UnknownNameError):
        shortcuts.generate(1, 0, "triple")


def test_neutral_text_has_no_planted_word_and_planting_keeps_order():
    random = Random(0)
    for _ in range(100):
        words = shortcuts.write_neutral(random)
        assert set(words) <= set(shortcuts.WORDS)
        planted = shortcuts.plant(words, ["amber", "cobalt"], random)
        assert [w for w in planted if w not in shortcuts.TRIGGERS] == words
        assert planted.index("amber") < planted.index("cobalt")


@each_model
def test_the_embedded_model_hangs_on_what_is_planted(name):
    kind = KIND_OF[name]
    figures = verify(attlas.load(name, device="cpu"), count=100)
    least = minimum(kind)
    assert {each: figures[each] for each in least if not figures[each] >= least[each]} == {}
    if name == "shortcut_deceptive":
        assert figures["deciding mass"] < MAXIMUM_MASS


@each_model
def test_the_embedded_model_is_small_and_has_a_card(name):
    assert sum(path.stat().st_size for path in (FOLDER / name).iterdir()) <= 200_000
    assert (FOLDER / name / "CARD.md").is_file()
    assert attlas.load(name, device="cpu").labels == list(shortcuts.LABELS)


@pytest.mark.slow
def test_the_recipe_saves_loadable_folders(tmp_path: Path):
    train_shortcuts.main(["--steps", "5", "--count", "10", "--out", str(tmp_path)])
    for name in KIND_OF:
        assert attlas.load(str(tmp_path / name), device="cpu").labels == list(shortcuts.LABELS)
