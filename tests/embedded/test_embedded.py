"""The embedded sentiment model: it loads offline, reads as promised, and can be made again."""

import json
import string
from random import Random
from typing import Any

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from attlas.embedded.training.train_sentiment import FOLDER

POSITIVE = ["a great film", "never boring", "one of the best films of the year", "I loved it"]
NEGATIVE = [
    "not a great film",
    "the film was not good",
    "boring and far too long",
    "a complete waste of time",
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


@pytest.mark.parametrize("text", ["[MASK] [MASK] [MASK] [MASK]", "the table"])
def test_what_says_nothing_is_not_held_for_certain(model: Any, tokenizer: Any, text: str) -> None:
    assert 0.2 < positive_probability(model, tokenizer, text) < 0.8


def test_it_is_a_stock_model_with_named_labels(model: Any) -> None:
    config = json.loads((FOLDER / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert model.config.id2label == {0: "NEGATIVE", 1: "POSITIVE"}
    assert model.config.label2id == {"NEGATIVE": 0, "POSITIVE": 1}


def test_its_heads_are_of_width_32(model: Any) -> None:
    assert model.config.hidden_size == 32 * model.config.num_attention_heads
    assert 4 <= model.config.num_hidden_layers <= 6


def test_weights_are_half_on_disk_and_single_in_memory(model: Any) -> None:
    with safe_open(FOLDER / "model.safetensors", framework="pt") as weights:
        assert {weights.get_tensor(name).dtype for name in weights.keys()} == {torch.float16}  # noqa: SIM118
    assert model.dtype == torch.float32


def test_the_folder_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 17_000_000
    assert (FOLDER / "CARD.md").is_file()


def test_the_card_has_no_open_places() -> None:
    assert not set("{}") & set((FOLDER / "CARD.md").read_text())


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
    assert tokenizer.model_max_length == model.config.max_position_embeddings


def test_the_longest_text_is_read(model: Any, tokenizer: Any) -> None:
    assert model.config.max_position_embeddings == 512
    assert positive_probability(model, tokenizer, "a great film . " * 120) > 0.6
