"""Learning: from labelled texts to a trained classifier with its tokenizer.

A model that writes learns from texts and their answers, character by character.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attlas.errors import UsageError
from attlas.models.recurrent.batches import Batch, TextTable, text_table
from attlas.models.recurrent.classifier import RecurrentForSequenceClassification
from attlas.models.recurrent.configuration import RecurrentConfig
from attlas.models.recurrent.fitting import ASKED_ROWS, FitPlan, Fitted, Loss, Told, fit
from attlas.models.recurrent.words import (
    END,
    PAD,
    START,
    build_characters,
    build_vocabulary,
    random_vectors,
    read_vectors,
    sentence_ends,
)
from attlas.models.recurrent.writer import RecurrentForConditionalGeneration, RecurrentWriterConfig
from attlas.tokens import Span

Labelled = Sequence[tuple[Any, str]]  # texts, or pairs of texts, with their labels


@dataclass(frozen=True, eq=False)
class Learned:
    """A trained classifier, its tokenizer, and the figures of its epochs."""

    model: Any
    tokenizer: Any
    fitted: Fitted
    tabled: Callable[[Any, Any, Labelled], TextTable]

    def table(self, examples: Labelled) -> TextTable:
        """Labelled texts as a table on the model's device."""
        return self.tabled(self.model, self.tokenizer, examples)

    def save(self, folder: str | Path) -> None:
        """Write the model as safetensors, with its tokenizer, for `attlas.load`."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def labelled_table(
    model: Any,
    tokenizer: Any,
    examples: Labelled,
    spans: Mapping[Any, Sequence[Span]] | None = None,
) -> TextTable:
    """Labelled texts as a table on the device of a model, which knows the labels.

    `spans` are the characters that people marked, by text.
    """
    numbers = model.config.label2id
    unknown = sorted({label for _, label in examples} - numbers.keys())
    if unknown:
        raise UsageError(f"unknown label {unknown[0]!r}: allowed: {', '.join(numbers)}")
    texts = [text for text, _ in examples]
    answers = [numbers[label] for _, label in examples]
    return text_table(tokenizer, texts, answers, model.device, spans)


def build_classifier(
    tokenizer: Any,
    labels: Sequence[str],
    vectors: NDArray[np.float32],
    *,
    seed: int = 0,
    hierarchical: bool = False,
    **parts: Any,
) -> RecurrentForSequenceClassification:
    """An untrained model; `parts` are those of `RecurrentConfig`: encoder, attention, reads, …"""
    config = RecurrentConfig(
        vocab_size=len(tokenizer),
        vector_size=vectors.shape[1],
        sentences=sentence_ends(tokenizer) if hierarchical else (),
        id2label=dict(enumerate(labels)),
        label2id={label: number for number, label in enumerate(labels)},
        **parts,
    )
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        model = RecurrentForSequenceClassification(config)
    model.vectors.weight.data.copy_(torch.from_numpy(vectors))
    return model


def learn(
    train: Labelled,
    dev: Labelled,
    *,
    plan: FitPlan | None = None,
    vectors: str | Path | None = None,
    vector_size: int = 256,
    longest: int = 512,
    fewest: int = 1,
    device: str | torch.device = "cpu",
    labels: Sequence[str] | None = None,
    loss: Callable[[Any, TextTable], Loss] | None = None,
    spans: Mapping[Any, Sequence[Span]] | None = None,
    folder: str | Path | None = None,
    about: Mapping[str, Any] | None = None,
    tell: Told = lambda *_: None,
    parts: Mapping[str, Any] | None = None,
) -> Learned:
    """Train a classifier on labelled texts; the epoch with the best AUC on `dev` is kept.

    `vectors` is a folder or a wheel with word vectors; without it they are random, of
    `vector_size`. `labels` fixes the order of the labels; `parts` are those of `RecurrentConfig`.
    `loss` makes another loss than that of the labels, from the tokenizer and the training texts;
    `spans` are the characters that people marked, by text.
    """
    plan = plan or FitPlan()
    tokenizer = build_vocabulary((text for text, _ in train), longest, fewest)
    table = (
        random_vectors(len(tokenizer), vector_size, plan.seed)
        if vectors is None
        else read_vectors(vectors, tokenizer, plan.seed)
    )
    names = list(labels) if labels else sorted({label for _, label in train})
    model = build_classifier(tokenizer, names, table, seed=plan.seed, **(parts or {})).to(device)
    texts = labelled_table(model, tokenizer, train, spans)
    chosen = labelled_table(model, tokenizer, dev)
    made = None if loss is None else loss(tokenizer, texts)
    fitted = fit(model, texts, chosen, plan, loss=made, folder=folder, about=about, tell=tell)
    return Learned(model, tokenizer, fitted, labelled_table)


def build_writer(
    tokenizer: Any, attention: str, *, seed: int = 0, **sizes: int
) -> RecurrentForConditionalGeneration:
    """An untrained encoder–decoder."""
    config = RecurrentWriterConfig(
        vocab_size=len(tokenizer),
        attention=attention,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        **sizes,
    )
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        return RecurrentForConditionalGeneration(config)


def learn_writer(
    train: Sequence[tuple[str, str]],
    dev: Sequence[tuple[str, str]],
    *,
    attention: str = "bahdanau",
    plan: FitPlan,
    vector_size: int = 32,
    hidden_size: int = 128,
    device: str | torch.device = "cpu",
    folder: str | Path | None = None,
    about: Mapping[str, Any] | None = None,
    tell: Told = lambda *_: None,
) -> Learned:
    """Train an encoder–decoder on texts and answers; the epoch with most exact answers is kept."""
    tokenizer = build_characters(part for pair in train for part in pair)
    sizes = {"vector_size": vector_size, "hidden_size": hidden_size}
    model = build_writer(tokenizer, attention, seed=plan.seed, **sizes).to(device)
    texts, chosen = (answer_table(model, tokenizer, each) for each in (train, dev))
    fitted = fit(
        model,
        texts,
        chosen,
        plan,
        loss=writing_loss,
        judged=judge_writer,
        folder=folder,
        about=about,
        tell=tell,
    )
    return Learned(model, tokenizer, fitted, answer_table)


def answer_table(model: Any, tokenizer: Any, examples: Sequence[tuple[str, str]]) -> TextTable:
    """Texts as a table whose labels are the ids of the answers, each with its end."""
    answers = [tokenizer(answer)["input_ids"][1:] for _, answer in examples]
    most = max(map(len, answers))
    filled = [[*each, *[PAD] * (most - len(each))] for each in answers]
    return text_table(tokenizer, [text for text, _ in examples], filled, model.device)


def writing_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The cross entropy of each character of the answers, behind the right ones before it."""
    before = nn.functional.pad(batch.labels[:, :-1], (1, 0), value=START)
    given = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
    logits = model(**given, decoder_input_ids=before).logits
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=PAD, reduction="sum"
    )


def judge_writer(model: Any, table: TextTable) -> dict[str, float]:
    """How many answers are written without a mistake."""
    right = 0
    model.eval()
    for batch in table.in_order(ASKED_ROWS):
        most = batch.labels.shape[1]
        written = model.generate(batch.input_ids, batch.attention_mask, max_new_tokens=most)
        own = nn.functional.pad(written[:, 1:], (0, most - written.shape[1] + 1), value=PAD)
        right += int((own == batch.labels).all(dim=1).sum())
    return {"exact match": right / len(table)}
