"""ModelFacts: a model and its tokenizer, with what is known of them without running the model."""

from collections.abc import Mapping
from functools import cached_property
from inspect import signature
from typing import Any

import torch
from torch import nn

from attlas.errors import UnknownNameError, UsageError
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.tasks import TASKS, Task, find_task
from attlas.models.facts.unwrap import unwrap


class ModelFacts:
    """A model, its tokenizer or processor, its task, its labels and its limits."""

    def __init__(
        self, model: Any, tokenizer: Any = None, *, name: str | None = None, task: str | None = None
    ) -> None:
        if task is not None and task not in TASKS:
            raise UnknownNameError("task", task, TASKS)
        self.model: nn.Module = unwrap(model)
        both = hasattr(tokenizer, "tokenizer") and hasattr(tokenizer, "image_processor")
        self.tokenizer = tokenizer.tokenizer if both else tokenizer
        self.image_processor = tokenizer.image_processor if both else tokenizer
        self.task: Task | None = TASKS[task] if task else find_task(self.model)
        self.name = name or getattr(self.model, "name_or_path", "") or type(self.model).__name__
        if tokenizer is None:
            raise UsageError("a subject needs a tokenizer, or an image processor, beside the model")
        if self.reads_pairs and not self.reads_objects and not both:
            raise UsageError(
                f"{self.name} reads a text and a picture: it needs a processor of both, one with a "
                f"tokenizer and an image_processor, not {type(tokenizer).__name__}"
            )

    @property
    def device(self) -> torch.device:
        """The device that the inputs go to."""
        return next(self.model.parameters()).device

    @property
    def reads_images(self) -> bool:
        """Whether the inputs are pictures."""
        return internals.takes_pixels(self.model)

    @property
    def reads_pairs(self) -> bool:
        """Whether an input is a text and a picture, each in a stream of its own."""
        return self.task is not None and self.task.pairs

    @property
    def reads_objects(self) -> bool:
        """Whether the model reads objects that a detector found, beside a text."""
        return self.reads_pairs and "visual_feats" in self.parameters

    @property
    def has_decoder(self) -> bool:
        """Whether this is an encoder–decoder."""
        return bool(getattr(self._config, "is_encoder_decoder", False))

    @property
    def predicts_next(self) -> bool:
        """Whether the output is about the next token."""
        return self.task is not None and self.task.name in ("causal lm", "sequence to sequence")

    @property
    def fills_masks(self) -> bool:
        """Whether the output is about masked tokens."""
        return self.task is not None and self.task.name == "masked lm"

    @property
    def _config(self) -> Any:
        return getattr(self.model, "config", None)

    @cached_property
    def labels(self) -> list[str]:
        """The names of the classes."""
        if self.task is not None and self.task.name == "next sentence":
            return ["IS_NEXT", "NOT_NEXT"]
        if self.task is not None and self.task.name == "image and text":
            return ["similarity"]
        names: Mapping[int, str] = self._config.id2label
        count = getattr(self._config, "num_qa_labels", len(names))
        if len(names) != count:  # some configurations give the number of answers alone
            return [f"answer {index}" for index in range(count)]
        return [names[index] for index in sorted(names)]

    @property
    def link(self) -> str:
        """How logits become probabilities: softmax, sigmoid, or identity for a regression."""
        problem = getattr(self._config, "problem_type", None)
        name = self.task.name if self.task else ""
        if name == "image and text":
            return "identity"
        if name not in ("sequence classification", "image classification"):
            return "softmax"
        if problem == "regression" or (len(self.labels) == 1 and problem is None):
            return "identity"
        return "sigmoid" if problem == "multi_label_classification" else "softmax"

    @cached_property
    def max_tokens(self) -> int:
        """How many tokens the model takes."""
        limits = [getattr(self.tokenizer, "model_max_length", None)]
        limits.append(getattr(self._config, "max_position_embeddings", None))
        limits.append(internals.longest_text(self.model))
        for path, module in self.model.named_modules():
            if path.endswith("position_embeddings") and isinstance(module, nn.Embedding):
                offset = 0 if module.padding_idx is None else module.padding_idx + 1
                limits.append(module.num_embeddings - offset)
        return min(
            (limit for limit in limits if isinstance(limit, int) and limit > 0), default=2**30
        )

    @cached_property
    def parameters(self) -> set[str]:
        """The names of the arguments that the model's forward takes."""
        return set(signature(self.model.forward).parameters)

    @cached_property
    def ways_in(self) -> list[nn.Module]:
        """The modules that turn ids or pixels into vectors."""
        return internals.ways_in(self.model)
