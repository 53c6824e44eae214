"""A small transformer that classifies texts, trained by a study from random weights."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random

import torch
from tokenizers import Tokenizer
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from attlas.data.example import Example
from attlas.embedded.training.train_facts import (
    MASK,
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


@dataclass(frozen=True, eq=False)
class Lesson:
    """Labelled texts as a model sees them, and the tokenizer that made them so."""

    tokenizer: Tokenizer
    labels: list[str]
    rows: list[list[int]]  # of token ids
    answers: list[int]  # numbers of labels


def make_lesson(examples: Sequence[Example], words: int) -> Lesson:
    """Give each of the most frequent words a number, and encode the texts."""
    labels = sorted({str(each.label) for each in examples})
    tokenizer = word_tokenizer(_frequent([str(each.text) for each in examples], words))
    tokenizer.enable_truncation(LONGEST)
    rows = [each.ids for each in tokenizer.encode_batch([str(each.text) for each in examples])]
    return Lesson(tokenizer, labels, rows, [labels.index(str(each.label)) for each in examples])


def train_classifier(
    examples: Sequence[Example], size: Architecture, *, seed: int, device: str | None
) -> Subject:
    """Train a BERT of this size on labelled texts; the seed decides weights and batches."""
    lesson = make_lesson(examples, size.words)
    torch.manual_seed(seed)
    model = _untrained(lesson, size)
    model.to(torch.device(device or "cpu"))
    teach(model, lesson, size, seed)
    lesson.tokenizer.no_truncation()
    made = PreTrainedTokenizerFast(
        tokenizer_object=lesson.tokenizer, model_max_length=LONGEST, **SPECIAL
    )
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


def _untrained(lesson: Lesson, size: Architecture) -> BertForSequenceClassification:
    config = BertConfig(
        vocab_size=lesson.tokenizer.get_vocab_size(),
        hidden_size=size.width,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=2 * size.width,
        max_position_embeddings=LONGEST,
        id2label=dict(enumerate(lesson.labels)),
        label2id={label: number for number, label in enumerate(lesson.labels)},
        pad_token_id=PAD,
    )
    return BertForSequenceClassification(config)


def teach(model: nn.Module, lesson: Lesson, size: Architecture, seed: int) -> None:
    """Train a model that takes token ids and a mask, and returns something with logits."""
    optimizer, schedule = optimize([model], size.rate, size.steps)
    rows, answers = lesson.rows, lesson.answers
    chosen = batches([len(row) for row in rows], min(size.batch, len(rows)), Random(seed))
    device = next(model.parameters()).device
    chance = torch.Generator().manual_seed(seed)
    model.train()
    for indices in islice(chosen, size.steps):
        ids = stacked([rows[index] for index in indices], PAD, "cpu")
        hidden = (torch.rand(ids.shape, generator=chance) < MASKED) & (ids >= len(SPECIAL))
        given = ids.masked_fill(hidden, MASK).to(device)
        right = torch.tensor([answers[index] for index in indices], device=device)
        logits = model(given, attention_mask=(given != PAD).long()).logits
        train_step(model, cross_entropy(logits, right), optimizer, schedule)
