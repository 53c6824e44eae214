"""The verb `triggers`: on models whose trigger is known, and figure by figure."""

import numpy as np
import pytest
from subjects import subject

import attlas
from attlas.data import Example, read_examples
from attlas.data.generated.shortcuts import generate, generate_undecided
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.heads.trigger_effects import insert
from attlas.heads.triggers import by_class_in_turn, known_labels
from attlas.results import Trigger, Triggers


@pytest.fixture(scope="module")
def data():
    return [*generate(24, 0), *generate_undecided(12, 1)]


@pytest.fixture(scope="module")
def planted(data):
    return attlas.triggers(attlas.load("shortcut_token"), data, candidates=6, draws=3)


def test_the_planted_word_is_the_strongest_trigger(planted):
    first = planted[0]
    assert first.text in ("amber", "cobalt")
    assert first.strongest.before == 1.0
    assert first.strongest.after == 0.0
    assert first.strongest.drop > 0.5
    assert first.strongest.low > 0.5


def test_what_suggested_it_is_told(planted, data):
    first = planted[0]
    assert first.found_in in {example.text for example in data}
    assert first.text in first.found_in.split()
    assert first.text in {first.entries[0].query, first.entries[0].key}
    assert first.attribution == pytest.approx(sum(each.attribution for each in first.entries))
    assert first.entries[0].attribution >= first.entries[1].attribution


def test_accuracies_are_those_of_the_texts_with_the_words_in(planted, data):
    """No text that a trigger was found in is tried on; each class is counted by hand."""
    model, first = attlas.load("shortcut_token"), planted[0]
    order = np.random.default_rng(0).permutation(len(data))
    others = [data[i] for i in order[len(data) // 2 :]]
    assert first.found_in not in {example.text for example in others}
    changed = model.predict([insert(example.text, first.words) for example in others])["label"]
    for effect in first.effects:
        right = [
            label == example.label
            for label, example in zip(changed, others, strict=True)
            if example.label == effect.label
        ]
        assert effect.texts == len(right)
        assert effect.after == pytest.approx(np.mean(right))
        assert effect.drop == pytest.approx(effect.control - effect.after)
        assert effect.low <= effect.drop <= effect.high


def test_words_that_mean_nothing_do_nothing_beyond_random_ones(planted):
    neutral = [each for each in planted if not {"amber", "cobalt"} & set(each.text.split())]
    assert neutral
    assert all(each.strongest.after == 1.0 and each.strongest.drop <= 0 for each in neutral)


def test_a_seed_decides_all(data):
    model, options = attlas.load("shortcut_token"), {"candidates": 2, "draws": 2, "steps": 2}
    one, again, other = (
        attlas.triggers(model, data[:16], seed=seed, **options).to_dict()["triggers"]
        for seed in (1, 1, 2)
    )
    assert one == again != other


def test_saved_and_loaded_it_is_the_same(planted, tmp_path):
    back = Triggers.load(planted.save(tmp_path / "found.safetensors"))
    assert back.to_dict() == planted.to_dict()
    assert back.payload() == planted.payload()


def test_the_table_has_a_row_for_each_trigger_and_class(planted):
    table = planted.to_pandas()
    assert len(table) == 6 * 3
    assert list(table["trigger"][:3]) == [planted[0].text] * 3


def test_what_is_too_small_is_not_tried(data):
    found = attlas.triggers(attlas.load("shortcut_token"), data[:8], least=0.99, steps=2)
    assert len(found) == 0
    assert found.notes[0].startswith("0 different triggers")
    assert repr(found) == "Triggers(none)" and found.to_pandas().empty


def test_pairs_keep_the_part_a_word_stood_in():
    model = subject("sequence classification")
    pairs = [((f"the film {i}", f"a cat sat {i}"), i % 2) for i in range(8)]
    found = attlas.triggers(model, pairs, candidates=2, draws=1, steps=2)
    assert {word.segment for each in found for word in each.words} <= {"text_a", "text_b"}


def test_progress_is_told(data):
    steps = []
    attlas.triggers(
        attlas.load("shortcut_token"), data[:12], candidates=2, draws=1, steps=2, watch=steps.append
    )
    assert {step.what.split()[0] for step in steps} == {"reading", "trying"}
    assert all(0 <= step.done < step.total for step in steps)


def test_triggers_of_each_class_come_in_turn():
    def made(name, label):
        return Trigger((), 0.0, (), "encoder.0", 0, name, label)

    given = [made("a1", "A"), made("a2", "A"), made("b1", "B"), made("a3", "A"), made("b2", "B")]
    assert [each.found_in for each in by_class_in_turn(given)] == ["a1", "b1", "a2", "b2", "a3"]


def test_data_are_read_once_each_and_unknown_labels_left_out():
    given = [Example("one", "yes"), ("two", 0), ("one", "no"), Example("three", "perhaps")]
    read = read_examples(given)
    assert known_labels(read, ["NO", "YES"]) == ([("one", 1), ("two", 0)], 1)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ([("one", "no")], UsageError, "two different texts"),
        ([("one", "perhaps")], UnknownNameError, "allowed: NO, YES"),
        ([("one", "no"), (("one", "two"), "no")], UsageError, "not a mixture"),
    ],
)
def test_data_that_cannot_be_used(given, error, said):
    with pytest.raises(error, match=said):
        known_labels(read_examples(given), ["NO", "YES"])


@pytest.mark.parametrize("task", ["causal lm", "regression", "multi-label", "token classification"])
def test_other_models_are_refused(task):
    with pytest.raises(UnsupportedModelError, match="one of several labels"):
        attlas.triggers(subject(task), [("one", 0), ("two", 1)])


@pytest.mark.parametrize("name", ["candidates", "draws", "extract_from"])
def test_numbers_are_at_least_one(name):
    with pytest.raises(UsageError, match=f"{name} must be at least 1, not 0"):
        attlas.triggers(subject("sequence classification"), [("a", 0), ("b", 1)], **{name: 0})


def test_count_alone_keeps_its_old_meaning_and_warns(data):
    model, options = attlas.load("shortcut_token"), {"draws": 1, "steps": 2}
    with pytest.warns(FutureWarning, match="the number of triggers to try is candidates="):
        old = attlas.triggers(model, data[:12], count=2, **options)
    assert old.to_dict() == attlas.triggers(model, data[:12], candidates=2, **options).to_dict()
    drawn = attlas.triggers(model, data[:12], candidates=2, count=6, **options)
    assert "in 3 texts" in drawn.notes[0] and "on 3 other texts" in drawn.notes[0]
