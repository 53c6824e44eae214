"""Learning to write: texts and their answers, character by character."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attlas.models.recurrent.batches import Batch, TextTable, text_table
from attlas.models.recurrent.fitting import FitPlan, Told, fit
from attlas.models.recurrent.learning import Learned
from attlas.models.recurrent.words import END, PAD, START, build_characters
from attlas.models.recurrent.writer import RecurrentForConditionalGeneration, RecurrentWriterConfig

ASKED_ROWS = 256


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
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(plan.seed)
        config = RecurrentWriterConfig(
            vocab_size=len(tokenizer),
            vector_size=vector_size,
            hidden_size=hidden_size,
            attention=attention,
            pad_token_id=PAD,
            bos_token_id=START,
            eos_token_id=END,
        )
        model = RecurrentForConditionalGeneration(config).to(device)
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
