"""A small transformer that classifies texts, trained by a study from random weights."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

import torch
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from attlas.data.example import Example
from attlas.embedded.training.train_facts import (
    PAD,
    SPECIAL,
    batches,
    optimize,
    stacked,
    train_step,
    word_tokenizer,
)
from attlas.models.subject import Subject

LONGEST = 128  # tokens; longer texts are cut
MASKED = 0.1  # of the words in training, so that a masked word is nothing new


@dataclass(frozen=True)
class Architecture:
    """The size of a small transformer, and how long it is trained."""

    layers: int = 4
    heads: int = 8
    width: int = 128
    steps: int = 1000
    batch: int = 64
    rate: float = 1e-3
    words: int = 20000  # of the vocabulary, the most frequent ones


def train_classifier(
    examples: Sequence[Example], size: Architecture, *, seed: int, device: str | None
) -> Subject:
    """Train a BERT of this size on labelled texts; the seed decides weights and batches."""
    labels = sorted({str(each.label) for each in examples})
    tokenizer = word_tokenizer(_frequent([str(each.text) for each in examples], size.words))
    tokenizer.enable_truncation(LONGEST)
    rows = [each.ids for each in tokenizer.encode_batch([str(each.text) for each in examples])]
    answers = [labels.index(str(each.label)) for each in examples]
    torch.manual_seed(seed)
    model = _untrained(tokenizer.get_vocab_size(), labels, size)
    model.to(torch.device(device or "cpu"))
    _train(model, rows, answers, tokenizer.token_to_id("[MASK]"), size, seed)
    tokenizer.no_truncation()
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LONGEST, **SPECIAL)
    return Subject(model.eval(), made, name=f"small transformer, seed {seed}")


def _frequent(texts: Sequence[str], most: int) -> list[str]:
    """The most frequent words, as the tokenizer splits texts."""
    plain = word_tokenizer([])
    counts = Counter(
        word
        for text in texts
        for word, _ in plain.pre_tokenizer.pre_tokenize_str(plain.normalizer.normalize_str(text))
    )
    return [word for word, _ in counts.most_common(most)]


def _untrained(
    pieces: int, labels: Sequence[str], size: Architecture
) -> BertForSequenceClassification:
    config = BertConfig(
        vocab_size=pieces,
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=2 * size.width,
        max_position_embeddings=LONGEST,
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        pad_token_id=PAD,
    )
    return BertForSequenceClassification(config)


def _train(
    model: BertForSequenceClassification,
    rows: Sequence[list[int]],
    answers: Sequence[int],
    mask: int,
    size: Architecture,
    seed: int,
) -> None:
    optimizer, schedule = optimize([model], size.rate, size.steps)
    chosen = batches([len(row) for row in rows], min(size.batch, len(rows)), Random(seed))
    device = model.device
    chance = torch.Generator().manual_seed(seed)
    model.train()
    for indices in islice(chosen, size.steps):
        ids = stacked([rows[index] for index in indices], PAD, "cpu")
        hidden = (torch.rand(ids.shape, generator=chance) < MASKED) & (ids >= len(SPECIAL))
        given = ids.masked_fill(hidden, mask).to(device)
        right = torch.tensor([answers[index] for index in indices], device=device)
        logits = model(given, attention_mask=(given != PAD).long()).logits
        train_step(model, cross_entropy(logits, right), optimizer, schedule)
