"""Recipes: the models that `train` knows by name, each with its sizes and how it is trained."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attlas.models.recurrent.fitting import FitPlan

WRITERS = ("bahdanau", "luong")
_WIDE = {"hidden_size": 100, "attention_size": 100, "dropout": 0.44, "output_dropout": 0.35}
_SENTENCES = {**_WIDE, "sentence_dropout": 0.22, "hierarchical": True}
_CONVOLUTIONS = {"encoder": "cnn", "kernels": (3, 5)}
# Jain and Wallace, and Serrano and Smith, in this order.
_EIGHT = FitPlan()
_UNTIL_WORSE = FitPlan(
    epochs=60, rows=64, rate=4e-4, decay=0.0, patience=5, slower=0.5, by="accuracy"
)
_WRITING = FitPlan(epochs=10, rows=32, rate=1e-3, decay=0.0, patience=3, by="exact match")


@dataclass(frozen=True)
class Recipe:
    """A model by name: what it is, its parts, and how it is trained."""

    about: str
    parts: Mapping[str, Any] = field(default_factory=dict)
    plan: FitPlan = _EIGHT


RECIPES = {
    "bilstm": Recipe("an LSTM in both directions", {"encoder": "bilstm"}),
    "cnn": Recipe("convolutions of four widths", {"encoder": "cnn"}),
    "average": Recipe("each word by itself", {"encoder": "average"}),
    "flat": Recipe(
        "a GRU over the whole text (FLANrnn)", {**_WIDE, "encoder": "bigru"}, _UNTIL_WORSE
    ),
    "flat_cnn": Recipe(
        "convolutions over the whole text (FLANconv)", {**_WIDE, **_CONVOLUTIONS}, _UNTIL_WORSE
    ),
    "flat_plain": Recipe("vectors without an encoder", {**_WIDE, "encoder": "none"}, _UNTIL_WORSE),
    "hierarchical": Recipe(
        "GRUs over words, then sentences (HANrnn)",
        {**_SENTENCES, "encoder": "bigru"},
        _UNTIL_WORSE,
    ),
    "hierarchical_cnn": Recipe(
        "convolutions over words, then sentences (HANconv)",
        {**_SENTENCES, **_CONVOLUTIONS},
        _UNTIL_WORSE,
    ),
    "hierarchical_plain": Recipe(
        "attention over words, then sentences, without encoders",
        {**_SENTENCES, "encoder": "none"},
        _UNTIL_WORSE,
    ),
    "bahdanau": Recipe("an encoder–decoder that attends before each step", {}, _WRITING),
    "luong": Recipe("an encoder–decoder that attends after each step", {}, _WRITING),
}
