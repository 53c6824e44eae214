"""Objectives in the Trainer of transformers: a class to use in its place."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Trainer

from attlas.data.example import Example
from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.loading.unwrapping import unwrap
from attlas.models.teaching.reading_row import find_reading_row
from attlas.models.teaching.training_tap import opened_for_training
from attlas.objectives.support.objective import Aim, read_aims
from attlas.tokens import marks_of
from attlas.training.aiming import make_step

MARKS = "marks"  # the column of marked tokens


def with_objectives(base: Any) -> Any:
    """A class of Trainer that takes `objectives` as well, made from another such class.

    Args:
        base: `transformers.Trainer`, or a class of your own that is made from it.

    Example:
        >>> from transformers import Trainer
        >>> import attlas
        >>> Mine = attlas.with_objectives(Trainer)
    """

    class ObjectiveTrainer(_Aimed, base):  # type: ignore[misc]
        """A Trainer whose loss has objectives beside the labels; see `with_objectives`."""

    return ObjectiveTrainer


class _Aimed:
    """What is added to a Trainer: objectives in the loss, and marks in the batches."""

    def __init__(
        self, *given: Any, objectives: str | Sequence[str | Aim] | None = None, **named: Any
    ) -> None:
        self.aims = read_aims(objectives)
        self._reads = ""  # which tokens the answer is read from, found at the first step
        self._sums: dict[str, list[Tensor]] = defaultdict(list)
        super().__init__(*given, **named)
        own: Any = self
        own.data_collator = _MarkCollator(own.data_collator)
        if self.aims:
            _refuse(own.args, own.model)

    def _set_signature_columns_if_needed(self) -> None:
        """Keep the column of marks, which no model takes."""
        own: Any = super()
        own._set_signature_columns_if_needed()
        columns: list[str] = self._signature_columns  # type: ignore[attr-defined]
        if MARKS not in columns:
            columns.append(MARKS)

    def compute_loss(
        self,
        model: Any,
        inputs: Mapping[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """The loss of the labels and, where the model learns, of the objectives."""
        own: Any = super()
        inputs = dict(inputs)
        marks, labels = inputs.pop(MARKS, None), inputs.get("labels")
        if not self.aims or not model.training:
            return own.compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if labels is None:
            raise UsageError("objectives need the labels of the texts in each batch")
        plain = {name: value for name, value in inputs.items() if name != "labels"}
        opened = unwrap(model)
        if not self._reads:
            _refuse(self.args, opened)  # type: ignore[attr-defined]
            self._reads = find_reading_row(opened, plain)
        with opened_for_training(opened) as tap:
            loss, outputs = own.compute_loss(model, inputs, True, num_items_in_batch)
        step = make_step(
            tap,
            model,
            plain,
            labels,
            marks=marks,
            reads=self._reads,
            tokenizer=getattr(self, "processing_class", None),
        )
        share = self._share(labels, num_items_in_batch)
        for aim in self.aims:
            value = aim.values(step).mean()
            self._sums[aim.name].append(value.detach())
            loss = loss + aim.weight * share * value.to(loss)
        return (loss, outputs) if return_outputs else loss

    def _share(self, labels: Tensor, items: Any) -> Any:
        """What the mean over a batch is multiplied by, so that it is scaled as the labels' loss is.

        The loss of a classifier is a mean over its batch. A loss function of the user and label
        smoothing divide by the number of labels in all batches that are accumulated.
        """
        own: Any = self
        scaled = own.compute_loss_func is not None or own.label_smoother is not None
        return labels.ne(-100).sum() / items if scaled and items is not None else 1.0

    def log(self, logs: dict[str, float], *given: Any, **named: Any) -> None:
        """Log the means of the objectives beside the loss."""
        if "loss" in logs and self._sums:
            means = {name: torch.stack(each).mean() for name, each in self._sums.items()}
            logs = {**logs, **{f"objective_{name}": float(each) for name, each in means.items()}}
            self._sums.clear()
        own: Any = super()
        own.log(logs, *given, **named)


class _MarkCollator:
    """A collator that fills up the marks of the tokens; another one does the rest."""

    def __init__(self, other: Any) -> None:
        self.other = other

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> Any:
        """One batch of features; those without marks get zeros."""
        if not any(MARKS in each for each in features):
            return self.other(features)
        rest = [{k: v for k, v in each.items() if k != MARKS} for each in features]
        batch = self.other(rest)
        ids = batch["input_ids"]
        marks = torch.zeros(ids.shape)
        for row, each in enumerate(features):
            own = torch.as_tensor(each.get(MARKS, ()), dtype=torch.float32)
            # Texts are filled up behind, or before if the tokenizer says so: find where they start.
            start = _start(batch, row, len(own))
            marks[row, start : start + len(own)] = own
        batch[MARKS] = marks
        return batch


def _start(batch: Mapping[str, Any], row: int, count: int) -> int:
    mask = batch.get("attention_mask")
    width = batch["input_ids"].shape[1]
    if mask is None or not count or count == width or bool(mask[row, 0]):
        return 0
    return int(width - count)


def _refuse(args: Any, model: Any) -> None:
    """Refuse ways of training in which attention is computed where it cannot be read."""
    told = {
        "gradient checkpointing computes attention again when it is not open": (
            args.gradient_checkpointing or getattr(model, "is_gradient_checkpointing", False)
        ),
        "a compiled model cannot be opened": args.torch_compile or hasattr(model, "_orig_mod"),
        "copies of a model on several GPUs in one process cannot be opened: use torchrun": (
            args.n_gpu > 1
        ),
    }
    for reason, is_so in told.items():
        if is_so:
            raise UnsupportedModelError(f"objectives cannot be trained so: {reason}")


def marked_features(
    tokenizer: Any,
    examples: Sequence[Example],
    labels: Mapping[str, int] | None = None,
    *,
    longest: int | None = None,
) -> list[dict[str, Any]]:
    """Texts as a Trainer takes them, each with its label and with marks of the marked tokens.

    Args:
        tokenizer: A fast tokenizer: it says where each token stands in the text.
        examples: From `attlas.texts` or `attlas.read_examples`.
        labels: The number of each label: `model.config.label2id`; in alphabetical order if not
            given.
        longest: The most tokens of a text; the rest is cut.

    Example:
        >>> import attlas
        >>> examples = attlas.texts("reviews", count=2)
        >>> features = attlas.marked_features(attlas.load().tokenizer, examples)
        >>> sorted(features[0])
        ['attention_mask', 'input_ids', 'labels', 'marks', 'token_type_ids']
    """
    if not getattr(tokenizer, "is_fast", False):
        raise UnsupportedModelError("this tokenizer does not say where its tokens stand")
    names = sorted({str(each.label) for each in examples})
    numbers = labels or {name: number for number, name in enumerate(names)}
    return [_feature(tokenizer, each, numbers, longest) for each in examples]


def _feature(
    tokenizer: Any, example: Example, numbers: Mapping[str, int], longest: int | None
) -> dict[str, Any]:
    pair = not isinstance(example.text, str)
    texts = tuple(example.text) if pair else (example.text,)
    cut = {"truncation": True, "max_length": longest} if longest else {"truncation": True}
    found = tokenizer(*texts, return_offsets_mapping=True, **cut)
    own = zip(found.pop("offset_mapping"), found.sequence_ids(0), strict=True)
    places = [place if part == int(pair) else None for place, part in own]
    if example.label not in numbers:
        raise UsageError(f"unknown label {example.label!r}: allowed: {', '.join(numbers)}")
    marks = marks_of(places, example.spans)
    return {**found, "labels": numbers[str(example.label)], MARKS: marks}


ObjectiveTrainer = with_objectives(Trainer)
