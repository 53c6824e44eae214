"""Recipes: the attention models that can be trained by name, and how their papers train them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from attlas.errors import UnknownNameError
from attlas.models.recurrent.configuration import ATTENTIONS
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
class TrainingRecipe:
    """A model by name: what it is, its parts, and how it is trained."""

    about: str
    parts: Mapping[str, Any] = field(default_factory=dict)
    plan: FitPlan = _EIGHT


RECIPES = {
    "bilstm": TrainingRecipe("an LSTM in both directions", {"encoder": "bilstm"}),
    "lstm": TrainingRecipe("an LSTM that reads forward", {"encoder": "lstm"}),
    "orthogonal_lstm": TrainingRecipe(
        "an LSTM whose states keep off their mean", {"encoder": "orthogonal_lstm"}
    ),
    "cnn": TrainingRecipe("convolutions of four widths", {"encoder": "cnn"}),
    "average": TrainingRecipe("each word by itself", {"encoder": "average"}),
    "flat": TrainingRecipe(
        "a GRU over the whole text (FLANrnn)", {**_WIDE, "encoder": "bigru"}, _UNTIL_WORSE
    ),
    "flat_cnn": TrainingRecipe(
        "convolutions over the whole text (FLANconv)", {**_WIDE, **_CONVOLUTIONS}, _UNTIL_WORSE
    ),
    "flat_plain": TrainingRecipe(
        "vectors without an encoder", {**_WIDE, "encoder": "none"}, _UNTIL_WORSE
    ),
    "hierarchical": TrainingRecipe(
        "GRUs over words, then sentences (HANrnn)",
        {**_SENTENCES, "encoder": "bigru"},
        _UNTIL_WORSE,
    ),
    "hierarchical_cnn": TrainingRecipe(
        "convolutions over words, then sentences (HANconv)",
        {**_SENTENCES, **_CONVOLUTIONS},
        _UNTIL_WORSE,
    ),
    "hierarchical_plain": TrainingRecipe(
        "attention over words, then sentences, without encoders",
        {**_SENTENCES, "encoder": "none"},
        _UNTIL_WORSE,
    ),
    "bahdanau": TrainingRecipe("an encoder–decoder that attends before each step", {}, _WRITING),
    "luong": TrainingRecipe("an encoder–decoder that attends after each step", {}, _WRITING),
}


def choose_recipe(model: str, attention: str | None) -> TrainingRecipe:
    """The recipe of a model; raises if it, or this attention of it, is unknown."""
    recipe = RECIPES.get(model)
    if recipe is None:
        raise UnknownNameError("model to train", model, RECIPES)
    if attention is not None and (attention not in ATTENTIONS or model in WRITERS):
        raise UnknownNameError("attention", attention, [] if model in WRITERS else ATTENTIONS)
    return recipe


def choose_plan(recipe: TrainingRecipe, seed: int, given: Mapping[str, Any]) -> FitPlan:
    """How a recipe is trained, with what the user said in place of it."""
    said = {name: value for name, value in given.items() if value is not None}
    return replace(recipe.plan, seed=seed, **said)
