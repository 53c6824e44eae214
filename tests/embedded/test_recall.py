"""recall: the texts carry their truth, and the built-in model relies on it."""

import json

import pytest
import torch
from safetensors import safe_open

import attlas
from attlas.data.generated.recall import FEWEST, KEYS, MOST, VALUES, generate
from attlas.embedded.checks.verify_recall import MINIMUM, answer, verify
from attlas.embedded.training import train_recall
from attlas.embedded.training.train_recall import FOLDER, NO_VALUE, make, write_row
from attlas.models.facts.places import embedded_names


@pytest.fixture(scope="module")
def subject():
    return attlas.load("recall", device="cpu")


def cut(example, name):
    start, stop = example.fields[name]
    return example.text[start:stop]


def test_the_same_seed_writes_the_same_texts():
    assert generate(30, 4) == generate(30, 4) != generate(30, 5)
    assert generate(10, 4) == generate(30, 4)[:10]


def test_the_three_spans_carry_the_label():
    for example in generate(300, 1):
        words = example.text.split()
        pairs = dict(zip(words[:-1:2], words[1::2], strict=True))
        assert pairs[words[-1]] == example.label == cut(example, "value")
        assert cut(example, "key") == cut(example, "query") == words[-1]
        value, key, query = example.spans
        assert (value, key, query) == tuple(example.fields[n] for n in ("value", "key", "query"))
        assert key[1] + 1 == value[0] and query == (len(example.text) - 1, len(example.text))


def test_keys_and_values_are_distinct():
    for example in generate(300, 2):
        words = example.text.split()
        keys, values = words[:-1:2], words[1::2]
        assert FEWEST <= len(keys) <= MOST
        assert len(set(keys)) == len(keys) and set(keys) <= set(KEYS)
        assert len(set(values)) == len(values) and set(values) <= set(VALUES)


def test_no_key_is_a_value_and_there_is_one_to_spare():
    assert not set(KEYS) & set(VALUES) and NO_VALUE not in (*KEYS, *VALUES)
    assert min(len(set(KEYS)), len(set(VALUES))) > MOST


def test_training_texts_are_not_held_out():
    random = train_recall.Random("training 0")
    trained = {" ".join(write_row(random, pairs)) for pairs in range(FEWEST, MOST + 1)}
    trained |= {" ".join(write_row(random, 1 + each % MOST)) for each in range(5000)}
    held_out = [example.text for example in generate(1000, 1)]
    beginnings = {" ".join(text.split()[:12]) for text in held_out}
    assert not beginnings & {" ".join(text.split()[:12]) for text in trained}


def test_training_rows_answer_by_the_pairs():
    random = train_recall.Random(0)
    for _ in range(200):
        words = write_row(random, 8)
        pairs = dict(zip(words[:16:2], words[1:16:2], strict=True))
        for key, value in zip(words[16::2], words[17::2], strict=True):
            assert value == pairs.get(key, NO_VALUE)


def test_the_embedded_model_relies_on_the_truth(subject):
    figures = verify(subject, count=50)
    assert figures.keys() == MINIMUM.keys()
    assert {name: value for name, value in figures.items() if value < MINIMUM[name]} == {}


def test_a_key_that_was_not_seen_has_no_value(subject):
    text = "a ant b bee c cat d dog e elk f fox g gnu h hen"
    assert [answer(subject, f"{text} {key}") for key in "cgz"] == ["cat", "gnu", NO_VALUE]


def test_it_is_a_stock_model_that_can_be_explained(subject):
    assert "recall" in embedded_names()
    config = json.loads((FOLDER / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"] and config["dtype"] == "float32"
    example = generate(1, 3)[0]
    found = attlas.explain(subject, example.text)
    assert found.target.name.strip() == example.label


def test_the_folder_is_small_and_half_precise():
    with safe_open(FOLDER / "model.safetensors", framework="pt") as weights:
        assert {weights.get_tensor(name).dtype for name in weights.keys()} == {torch.float16}  # noqa: SIM118
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 1_500_000
    assert (FOLDER / "CARD.md").is_file()


@pytest.mark.slow
def test_the_recipe_saves_a_loadable_folder(tmp_path):
    figures = make(tmp_path, steps=5, held_out=5)
    assert all(0 <= value <= 1 for value in figures.values())
    assert attlas.load(tmp_path, device="cpu").model.dtype == torch.float32
