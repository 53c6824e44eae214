"""Tasks: the kinds of models there are, and how the output of each kind is read.

Every output is read as `[batch, place, choice]`: a model makes one choice at each place. A
classifier has one place, a tagger or language model has one for each token, and a question
answerer has two, start and end, with the tokens as choices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import nn

from attlas.errors import UsageError
from attlas.shapes import Logits


@dataclass(frozen=True)
class Task:
    """A kind of model: the transformers tables of its classes, and how to read its output."""

    name: str
    tables: tuple[str, ...]
    logits: Callable[[Any], Logits]
    by_position: bool = False  # whether a target belongs to a position among the tokens
    pairs: bool = False  # whether an input is a text and a picture
    classes: tuple[str, ...] = ()  # classes that no table lists, or that a wrong one lists


def _one_place(output: Any) -> Logits:
    logits: Logits = output.logits[:, None, :]
    return logits


def _places(output: Any) -> Logits:
    logits: Logits = output.logits
    return logits


def _start_and_end(output: Any) -> Logits:
    return torch.stack([output.start_logits, output.end_logits], dim=1)


def _answers(output: Any) -> Logits:
    logits: Logits = output.question_answering_score[:, None, :]
    return logits


def _similarity(output: Any) -> Logits:
    """The similarity of each picture to its own text; the model compares all with all."""
    logits: Logits = output.logits_per_image.diagonal()[:, None, None]
    return logits


def _no_pair(_output: Any) -> Logits:
    raise UsageError("this model compares two texts: give a pair, (text, other text)")


# The order matters: several tables list some classes (BART's generator is also a masked LM).
TASKS = {
    task.name: task
    for task in (
        Task("next sentence", ("NEXT_SENTENCE_PREDICTION",), _one_place),
        Task(
            "sequence classification",
            ("SEQUENCE_CLASSIFICATION",),
            _one_place,
            classes=("RecurrentForSequenceClassification", "AdaptedForSequenceClassification"),
        ),
        Task("token classification", ("TOKEN_CLASSIFICATION",), _places, True),
        Task(
            "visual question answering",
            (),
            _answers,
            pairs=True,
            classes=("LxmertForQuestionAnswering",),
        ),
        Task("question answering", ("QUESTION_ANSWERING",), _start_and_end, True),
        Task("image classification", ("IMAGE_CLASSIFICATION",), _one_place),
        Task("sound classification", ("AUDIO_CLASSIFICATION",), _one_place),
        Task("speech recognition", ("CTC",), _places, True),
        Task("image and text", ("ZERO_SHOT_IMAGE_CLASSIFICATION",), _similarity, pairs=True),
        Task(
            "sequence to sequence",
            ("SEQ_TO_SEQ_CAUSAL_LM", "SPEECH_SEQ_2_SEQ"),
            _places,
            classes=("RecurrentForConditionalGeneration",),
        ),
        Task("masked lm", ("MASKED_LM",), _places, True),
        Task("causal lm", ("CAUSAL_LM",), _places),
        Task("similarity", (), _no_pair),
    )
}


# Language models that read pictures or sounds within a text.
_BESIDE_TEXT = ("IMAGE_TEXT_TO_TEXT", "SPEECH_SEQ_2_SEQ", "MULTIMODAL_LM")


def find_task(model: nn.Module) -> Task | None:
    """The task that lists the class of a model; None for a model without a head."""
    names = {parent.__name__ for parent in type(model).__mro__}
    listed = [task for task in TASKS.values() if names & _class_names(task)]
    has_decoder = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    # The table of encoder–decoders also lists some decoder-only classes.
    found = next((t for t in listed if has_decoder or t.name != "sequence to sequence"), None)
    beside = frozenset().union(*map(_names_in, _BESIDE_TEXT))
    if found is None and names & beside:
        writes = model.get_output_embeddings() is not None  # type: ignore[operator]
        kind = "sequence to sequence" if has_decoder else "causal lm"
        return TASKS[kind] if writes else None
    return found


# What transformers has heads for whose predictions are not explained.
_UNEXPLAINED = (
    "MULTIPLE_CHOICE",
    "OBJECT_DETECTION",
    "ZERO_SHOT_OBJECT_DETECTION",
    "SEMANTIC_SEGMENTATION",
    "UNIVERSAL_SEGMENTATION",
    "DEPTH_ESTIMATION",
    "VIDEO_CLASSIFICATION",
    "TABLE_QUESTION_ANSWERING",
    "AUDIO_FRAME_CLASSIFICATION",
    "TIME_SERIES_PREDICTION",
)


def unexplained_task(model: nn.Module) -> str | None:
    """The task of a model whose head is one that is not explained; None for any other model."""
    names = {parent.__name__ for parent in type(model).__mro__}
    tables = [table for table in _UNEXPLAINED if names & _names_in(table)]
    return tables[0].lower().replace("_", " ") if tables else None


def _class_names(task: Task) -> frozenset[str]:
    return frozenset(task.classes).union(*map(_names_in, task.tables))


@cache
def _names_in(table: str) -> frozenset[str]:
    """The names of the classes in a table of transformers."""
    from transformers.models.auto import modeling_auto

    found: set[str] = set()
    for entry in getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES").values():
        found.update(entry if isinstance(entry, (tuple, list)) else (entry,))
    return frozenset(found)
