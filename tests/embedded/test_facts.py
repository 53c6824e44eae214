"""The stories and the model that answers questions about them: the truth holds, and is used."""

from functools import cache
from pathlib import Path

import pytest

import attlas
from attlas.data.example import Example
from attlas.data.generated import facts
from attlas.embedded.checks.verify_facts import MINIMUM, exchange_other, exchange_source, verify
from attlas.embedded.training import train_facts
from attlas.errors import UnknownNameError


@cache
def examples() -> list[Example]:
    """Stories of all kinds; made when they are first asked for, not when tests are collected."""
    return facts.generate(600, 11, held_out=None)


def whereabouts(story: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The places of every person and object in turn: a reading of its own, by splitting words."""
    persons: dict[str, list[str]] = {}
    objects: dict[str, list[str]] = {}
    carrying: dict[str, set[str]] = {}
    for sentence in story.removesuffix(".").split(". "):
        person, verb, _, thing = sentence.split()
        hands = carrying.setdefault(person, set())
        if verb == "took":
            hands.add(thing)
            objects[thing] = [persons[person][-1]]
        elif verb == "dropped":
            hands.remove(thing)
        else:
            persons.setdefault(person, []).append(thing)
            for each in hands:
                objects[each].append(thing)
    return persons, objects


def answered(question: str, story: str) -> str:
    persons, objects = whereabouts(story)
    words = question.removesuffix("?").split()
    if words[-1] == "now":
        return persons[words[2]][-1]
    if words[1] == "is":
        return objects[words[3]][-1]
    trail = objects[words[3]]
    assert trail.count(words[-1]) == 1
    return trail[trail.index(words[-1]) - 1]


def test_the_label_is_what_the_story_says():
    assert all(answered(*example.text) == example.label for example in examples())


def test_the_supporting_sentences_are_as_many_as_the_kind_says():
    for example in examples():
        assert len(example.spans) == 1 + facts.KINDS.index(example.fields["kind"])
        told = [example.text[1][start:end] for start, end in example.spans]
        assert all(each.endswith(".") and each.count(".") == 1 for each in told)
        assert any(each.endswith(f" {example.label}.") for each in told)


def test_the_source_is_the_answer():
    assert all(e.text[1][slice(*e.fields["source"])] == e.label for e in examples())


def test_exchanged_stories_say_what_they_are_held_to_say():
    for number, example in enumerate(examples()[:200]):
        random = facts.Random(number)
        source, other = exchange_source(example, random), exchange_other(example, random)
        if source:
            assert answered(*source.text) == source.label != example.label
        if other:
            assert answered(*other.text) == other.label == example.label
            assert other.text != example.text


def test_stories_are_seeded_and_short():
    assert facts.generate(20, 3) == facts.generate(20, 3) != facts.generate(20, 4)
    lengths = {len(facts.read_story(example.text[1])) for example in examples()}
    assert lengths == {4, 5, 6, 7, 8}


def test_a_kind_can_be_asked_for():
    assert {e.fields["kind"] for e in facts.generate(20, 0, "three")} == {"three"}
    assert {e.fields["kind"] for e in examples()} == set(facts.KINDS)
    with pytest.raises(UnknownNameError):
        facts.generate(1, 0, "four")


def test_what_is_held_out_is_not_trained_on():
    trained = {example.text for example in facts.generate(500, 0, held_out=False)}
    assert trained.isdisjoint(example.text for example in facts.generate(500, 0, held_out=True))


@pytest.mark.parametrize(
    "story",
    [
        "Nadia took the kettle.",
        "Nadia entered the bakery. Nadia entered the bakery.",
        "Nadia entered the bakery. Nadia dropped the kettle.",
    ],
)
def test_an_impossible_story_settles_nothing(story):
    assert facts.solve("where is Nadia now?", story) is None


def test_the_embedded_model_hangs_on_the_supporting_sentences():
    figures = verify(attlas.load("facts", device="cpu"), count=100)
    assert {name: figures[name] for name in MINIMUM if not figures[name] >= MINIMUM[name]} == {}


def test_the_embedded_model_knows_every_word_and_is_small():
    subject = attlas.load("facts", device="cpu")
    unknown = subject.tokenizer.unk_token_id
    assert all(unknown not in subject.tokenizer(*e.text)["input_ids"] for e in examples())
    assert subject.labels == list(facts.PLACES)
    assert sum(path.stat().st_size for path in train_facts.FOLDER.iterdir()) <= 1_000_000
    assert (train_facts.FOLDER / "CARD.md").is_file()


@pytest.mark.slow
def test_the_recipe_saves_a_loadable_folder(tmp_path: Path):
    arguments = ["--steps", "5", "--stories", "200", "--count", "20", "--out", str(tmp_path)]
    train_facts.main(arguments)
    assert attlas.load(str(tmp_path), device="cpu").labels == list(facts.PLACES)
