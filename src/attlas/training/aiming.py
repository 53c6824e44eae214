"""Aiming: objectives on a batch of any trainer."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.recurrent.batches import Batch
from attlas.models.recurrent.fitting import Loss
from attlas.models.teaching.reading_row import ALL
from attlas.models.teaching.training_tap import KeyChange, TrainingTap, opened_for_training
from attlas.objectives.support.objective import Aim
from attlas.objectives.support.step import TrainingStep

WRITTEN = ("mask_token_id", "unk_token_id")  # special tokens that stand for words


def make_step(
    tap: TrainingTap,
    model: Any,
    arguments: Mapping[str, Tensor],
    labels: Tensor,
    *,
    marks: Tensor | None,
    reads: str,
    tokenizer: Any,
) -> TrainingStep:
    """What objectives are handed of a batch; `model` is called where they ask it again."""

    def run(given: Mapping[str, Tensor], change: KeyChange | None) -> Tensor:
        with opened_for_training(tap.model, change):
            logits: Tensor = model(**given).logits
            return logits

    special = special_tokens(arguments["input_ids"], tokenizer, getattr(tap.model, "config", None))
    return TrainingStep(tap, arguments, labels, special, marks, reads, run, tokenizer)


def special_tokens(ids: Tensor, tokenizer: Any, config: Any) -> Tensor:
    """Which tokens are special, by the tokenizer or, without one, by the configuration."""
    if tokenizer is not None:
        words = {getattr(tokenizer, name, None) for name in WRITTEN}
        known = [each for each in tokenizer.all_special_ids if each not in words]
    else:
        names = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "pad_token_id")
        known = [getattr(config, name, None) for name in names]
    numbers = [each for each in known if isinstance(each, int)]
    return torch.isin(ids, ids.new_tensor(numbers)) if numbers else torch.zeros_like(ids).bool()


def aimed_loss(loss: Loss, aims: tuple[Aim, ...], tokenizer: Any) -> Loss:
    """The loss of a recurrent model with objectives, summed over the batch as the labels' is."""

    def total(model: Any, batch: Batch) -> Tensor:
        if model.config.sentences:
            raise UsageError(
                "objectives are for models with one attention over words, not hierarchical ones"
            )
        with opened_for_training(model) as tap:
            found = loss(model, batch)
        step = make_step(
            tap,
            model,
            batch.arguments,
            batch.labels,
            marks=batch.marks,
            reads=ALL,
            tokenizer=tokenizer,
        )
        for aim in aims:
            found = found + aim.weight * aim.values(step).sum()
        return found

    return total
