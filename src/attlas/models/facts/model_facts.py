"""ModelFacts: a model and its tokenizer, and what is known about them before running the model."""

from collections.abc import Mapping
from copy import copy
from functools import cached_property
from inspect import Parameter, signature
from typing import Any, TypeVar

import torch
from torch import nn

from attlas.errors import NotDefinedError, UnknownNameError, UsageError
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.tasks import TASKS, Task, find_task, unexplained_task
from attlas.models.loading.offloading import device_of, dtype_of
from attlas.models.loading.unwrapping import unwrap
from attlas.tokens import PICTURE

_MEDIA = ("pixel_values", "input_features", "input_values")  # arguments beside a text
# Modules that gather a picture into vectors without a place in it, by a word of their class name.
GATHERERS = (
    *("Perceiver", "QFormer", "Resampler", "AriaProjector", "VectorQuantizer"),
    "ImageToTextProjection",
)
OF_PICTURES = ("Vision", *GATHERERS)
MASK = "image_embeds_position_mask"  # an argument that marks the places of a picture's parts
BY_MASK = -1  # where it does so, instead of a token
AnyFacts = TypeVar("AnyFacts", bound="ModelFacts")


class ModelFacts:
    """A model, its tokenizer or processor, its task, its labels and its limits."""

    def __init__(
        self, model: Any, tokenizer: Any = None, *, name: str | None = None, task: str | None = None
    ) -> None:
        if task is not None and task not in TASKS:
            raise UnknownNameError("task", task, TASKS)
        self.model: nn.Module = unwrap(model)
        is_pair = hasattr(tokenizer, "tokenizer") and hasattr(tokenizer, "image_processor")
        self.has_image_processor = is_pair
        self.feature_extractor = getattr(tokenizer, "feature_extractor", tokenizer)
        hears = hasattr(tokenizer, "tokenizer") and self.feature_extractor is not tokenizer
        self.tokenizer = tokenizer.tokenizer if is_pair or hears else tokenizer
        self.processor = tokenizer
        self.image_processor = tokenizer.image_processor if is_pair else tokenizer
        self.task: Task | None = TASKS[task] if task else find_task(self.model)
        self.name = name or getattr(self.model, "name_or_path", "") or type(self.model).__name__
        if unexplained_task(self.model) == "multiple choice":
            raise NotDefinedError(
                f"{type(self.model).__name__} chooses among several texts, and multiple choice is "
                "not explained; the model below its head can be: "
                f"model.{getattr(self.model, 'base_model_prefix', 'base_model')}"
            )
        if tokenizer is None:
            raise UsageError("a subject needs a tokenizer or an image processor besides the model")
        if self.reads_pairs and not self.reads_objects and not is_pair:
            raise UsageError(
                f"{self.name} reads a text and a picture: it needs a processor with a tokenizer "
                f"and an image_processor, not {type(tokenizer).__name__}"
            )

    def with_model(self: "AnyFacts", model: nn.Module) -> "AnyFacts":
        """The same subject with another model of the same kind."""
        new = copy(self)
        new.model = model
        for name in ("ways_in", "_text_parts"):  # modules of this model
            new.__dict__.pop(name, None)
        return new

    @property
    def headless(self) -> str:
        """Why there is no prediction to explain, for a model without a task."""
        other = unexplained_task(self.model)
        if other is None:
            return f"{self.name} has no head, so it predicts nothing"
        return f"{type(self.model).__name__} is for {other}, which is not explained"

    @property
    def device(self) -> torch.device:
        """The device that the inputs go to."""
        return device_of(self.model)

    @property
    def dtype(self) -> torch.dtype:
        """The number format of what the model computes, whatever its weights are kept in."""
        return dtype_of(self.model)

    @property
    def reads_images(self) -> bool:
        """Whether the inputs are pictures."""
        writes = bool(self.marks) or self.picture_argument is not None
        return internals.takes_pixels(self.model) and not writes

    @cached_property
    def picture_argument(self) -> str | None:
        """The argument that brings a picture which the model writes about, read by cross-attention.

        Without an image processor, a model that can do without pictures reads a text alone.
        """
        looks = self.predicts_next and self.crosses_to_pictures and self.has_image_processor
        return "pixel_values" if looks and "pixel_values" in self.parameters else None

    @property
    def sound_argument(self) -> str | None:
        """The argument that brings a sound, if the inputs are sounds."""
        name = getattr(self.model, "main_input_name", None)
        return name if name in ("input_values", "input_features") else None

    @property
    def reads_pairs(self) -> bool:
        """Whether an input is a text together with a picture, each in its own stream."""
        return self.task is not None and self.task.pairs

    @property
    def reads_two_texts(self) -> bool:
        """Whether an input is always two texts, such as a question with its text."""
        answers = self.task is not None and self.task.name == "question answering"
        return answers or getattr(self.config, "reads", "text") != "text"

    @property
    def reads_objects(self) -> bool:
        """Whether the model reads a text together with objects that a detector found."""
        return self.reads_pairs and "visual_feats" in self.parameters

    @property
    def image_token(self) -> int | None:
        """The id of the token that stands for a patch of a picture within a text, if any."""
        return self.marks.get("image")

    @cached_property
    def marks(self) -> dict[str, int]:
        """The ids of the tokens that stand for parts of a picture, film or sound within a text."""
        takes = "input_ids" in self.parameters and not self.parameters.isdisjoint(_MEDIA)
        takes = takes and self.sound_argument is None  # a text alone is read too
        if not takes or not self.predicts_next or self.crosses_to_pictures:
            return {}
        if MASK in self.parameters:
            return {PICTURE: BY_MASK}
        found = {
            segment: getattr(self.config, name, None)
            for segment, word in (("image", "image"), ("film", "video"), ("sound", "audio"))
            for name in (f"{word}_token_index", f"{word}_token_id")
        }
        return {name: number for name, number in found.items() if isinstance(number, int)}

    @cached_property
    def needs_pictures(self) -> bool:
        """Whether the model writes about pictures and cannot do without one."""
        known = signature(self.model.forward).parameters
        given = known.get("pixel_values")
        required = given is not None and given.default is Parameter.empty
        required = required or BY_MASK in self.marks.values()
        return self.picture_argument is not None or (bool(self.marks) and required)

    @property
    def no_cache(self) -> dict[str, bool]:
        """The argument that keeps a model from storing keys and values, if it takes one.

        A model with pictures in its text hands what it does not know on to its language model.
        """
        return {"use_cache": False} if "use_cache" in self.parameters or self.marks else {}

    @property
    def crosses_to_pictures(self) -> bool:
        """Whether a language model reads pictures by cross-attention from a stack of their own."""
        return bool({"cross_attention_mask", "image_attention_mask"} & self.parameters)

    @property
    def text_stack(self) -> nn.Module:
        """What words and patches enter together: the language model, or its encoder."""
        return self._text_parts[-1]

    def writes_at(self, path: str) -> bool:
        """Whether a module belongs to what reads and writes text, not to what prepares pictures."""
        parts = {id(each) for each in self._text_parts}
        modules = dict(self.model.named_modules())
        steps = path.split(".")
        above = [modules[".".join(steps[: count + 1])] for count in range(len(steps))]
        inside = [number for number, each in enumerate(above) if id(each) in parts]
        names = [type(each).__name__ for each in above[inside[0] + 1 :]] if inside else []
        return bool(inside) and not any(word in name for name in names for word in OF_PICTURES)

    @cached_property
    def _text_parts(self) -> list[nn.Module]:
        model: Any = self.model
        reads = self.has_decoder and bool(self.marks)
        return [model.get_decoder(), *([model.get_encoder()] if reads else [])]

    @property
    def has_decoder(self) -> bool:
        """Whether the model is an encoder–decoder."""
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def merges_streams(self) -> bool:
        """Whether a decoder attends to its own stream and to the encoder's in one softmax."""
        return any(owner.is_merged for owner in anatomy(self.model).owners)

    @property
    def compares(self) -> bool:
        """Whether an input is two texts, and the output is how alike they are."""
        return self.task is not None and self.task.name == "similarity"

    @property
    def predicts_next(self) -> bool:
        """Whether the model predicts the next token."""
        return self.task is not None and self.task.name in ("causal lm", "sequence to sequence")

    @property
    def fills_masks(self) -> bool:
        """Whether the model predicts masked tokens."""
        return self.task is not None and self.task.name == "masked lm"

    @property
    def config(self) -> Any:
        """The configuration of the model."""
        return getattr(self.model, "config", None)

    @cached_property
    def labels(self) -> list[str]:
        """The names of the classes."""
        if self.task is not None and self.task.name == "next sentence":
            return ["IS_NEXT", "NOT_NEXT"]
        if self.task is not None and self.task.name in ("image and text", "similarity"):
            return ["similarity"]
        given = self.config.id2label or range(self.config.num_labels)
        names = given if isinstance(given, Mapping) else {i: f"LABEL_{i}" for i in given}
        count = getattr(self.config, "num_qa_labels", len(names))
        if len(names) != count:  # some configurations give only the number of answers
            return [f"answer {index}" for index in range(count)]
        return [str(names[index]) for index in sorted(names)]  # a file may name classes by numbers

    @property
    def link(self) -> str:
        """How logits become probabilities: `softmax`, `sigmoid`, or `identity` for a regression."""
        problem = getattr(self.config, "problem_type", None)
        name = self.task.name if self.task else ""
        if name in ("image and text", "similarity"):
            return "identity"
        if name not in ("sequence classification", "image classification", "sound classification"):
            return "softmax"
        if problem == "regression" or (len(self.labels) == 1 and problem is None):
            return "identity"
        return "sigmoid" if problem == "multi_label_classification" else "softmax"

    @cached_property
    def max_tokens(self) -> int:
        """The largest number of tokens that the model takes."""
        limits = [getattr(self.tokenizer, "model_max_length", None)]
        limits.append(getattr(self.config, "max_position_embeddings", None))
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
