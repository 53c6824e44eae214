"""The embedded sentiment model: it loads offline, reads as promised, and can be made again."""

import json
import string
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from attlas.models.embedded import train_sentiment
from attlas.models.embedded.train_sentiment import (
    FOLDER,
    LONGEST,
    accuracy,
    learn_pieces,
    make,
    write_review,
)

TURN = "not a great film, but I could not look away"
POSITIVE = [TURN, "a great film", "never boring", "not bad", "I could not put it down"]
NEGATIVE = [
    "not a great film",
    "the film was not good",
    "boring and far too long",
    "I could not finish it",
    "I could not wait for it to end",
]


@pytest.fixture(scope="module", autouse=True)
def offline() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)


@pytest.fixture(scope="module")
def model() -> Any:
    return AutoModelForSequenceClassification.from_pretrained(FOLDER, local_files_only=True).eval()


@torch.no_grad()
def positive_probability(model: Any, tokenizer: Any, text: str) -> float:
    logits = model(**tokenizer(text, return_tensors="pt")).logits
    return float(logits.softmax(-1)[0, 1])


@pytest.mark.parametrize("text", POSITIVE)
def test_praise_is_positive(model: Any, tokenizer: Any, text: str) -> None:
    assert positive_probability(model, tokenizer, text) > 0.6


@pytest.mark.parametrize("text", NEGATIVE)
def test_blame_is_negative(model: Any, tokenizer: Any, text: str) -> None:
    assert positive_probability(model, tokenizer, text) < 0.4


def test_a_turn_is_not_held_for_certain(model: Any, tokenizer: Any) -> None:
    assert 0.6 <= positive_probability(model, tokenizer, TURN) <= 0.97


@pytest.mark.parametrize("text", ["a film", "[MASK] [MASK] [MASK] [MASK]", "the table"])
def test_what_says_nothing_is_undecided(model: Any, tokenizer: Any, text: str) -> None:
    assert 0.35 < positive_probability(model, tokenizer, text) < 0.65


def test_held_out_reviews_are_read_rightly() -> None:
    random = Random(2)
    written = [write_review(random, unseen=True) for _ in range(400)]
    reviews = [review for review in written if review.certainty > 0.5]
    labels = [int(review.positive) for review in reviews]
    assert accuracy(FOLDER, [review.text for review in reviews], labels) >= 0.93


def test_it_is_a_stock_model_with_named_labels(model: Any) -> None:
    config = json.loads((FOLDER / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert model.config.id2label == {0: "NEGATIVE", 1: "POSITIVE"}
    assert model.config.label2id == {"NEGATIVE": 0, "POSITIVE": 1}


def test_weights_are_half_on_disk_and_single_in_memory(model: Any) -> None:
    with safe_open(FOLDER / "model.safetensors", framework="pt") as weights:
        assert {weights.get_tensor(name).dtype for name in weights.keys()} == {torch.float16}  # noqa: SIM118
    assert model.dtype == torch.float32


def test_the_folder_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 700_000
    assert (FOLDER / "CARD.md").is_file()


def test_no_printable_ascii_is_unknown(tokenizer: Any) -> None:
    random = Random(0)
    printable = string.ascii_letters + string.digits + string.punctuation
    for length in [*range(1, 40), 200]:
        word = "".join(random.choice(printable) for _ in range(length))
        assert tokenizer.unk_token_id not in tokenizer(word)["input_ids"], word
    for first in printable:
        text = " ".join(first + second for second in printable)
        assert tokenizer.unk_token_id not in tokenizer.backend_tokenizer.encode(text).ids


def test_the_longest_text_is_said(model: Any, tokenizer: Any) -> None:
    assert tokenizer.model_max_length == model.config.max_position_embeddings == LONGEST


def test_the_same_seed_writes_the_same_reviews() -> None:
    first, second = ([write_review(Random(7)) for _ in range(20)] for _ in range(2))
    assert first == second


def test_the_same_reviews_give_the_same_pieces() -> None:
    texts = [write_review(Random(seed)).text for seed in range(300)]
    assert learn_pieces(texts) == learn_pieces(texts)


def test_every_slot_is_filled() -> None:
    random = Random(1)
    for unseen in (False, True):
        texts = [write_review(random, unseen=unseen).text for _ in range(2000)]
        assert not [text for text in texts if set(text) & set("{}") or "  " in text or ",," in text]


@pytest.mark.slow
def test_the_recipe_saves_a_loadable_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train_sentiment, "PIECES", 600)
    figures = make(tmp_path, reviews=400, steps=20, held_out=20)
    assert all(0 <= value <= 1 for value in figures.values())
    tokenizer = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path, local_files_only=True)
    assert 0 < positive_probability(model.eval(), tokenizer, TURN) < 1
