"""Why a model, or what prepares its inputs, cannot be loaded: in one line."""

import json
from pathlib import Path

from attlas.errors import first_line, in_short
from attlas.models.facts.places import unknown_model


def why_not(name: str, problem: Exception) -> str:
    """Why a model cannot be loaded, in one line."""
    text = str(problem)
    if isinstance(problem, json.JSONDecodeError) or "valid JSON file" in text:
        return f"{name} is damaged: its config.json cannot be read"
    if type(problem).__name__ == "SafetensorError":
        return f"{name} is damaged: its weights cannot be loaded ({_first_line(problem)})"
    if "safetensors" in text and "model.safetensors" in text:
        return (
            f"{name} has no safetensors weights; pickled ones can run code when they are read: "
            "convert them, or allow them with unsafe_weights=True"
        )
    if isinstance(problem, OSError) and not Path(name).exists():
        return unknown_model(name)
    return f"{name} cannot be loaded: {_first_line(problem)}"


def lacking(problem: Exception) -> str:
    """What a processor lacks; transformers lists the ways that it tried instead."""
    if "instantiate the backend tokenizer" in str(problem):
        return "its tokenizer.json is missing or damaged"
    return first_line(problem) if isinstance(problem, LookupError) else _first_line(problem)


def _first_line(problem: Exception) -> str:
    """The first line of an error, with the next if that only announces it."""
    found = [line.strip() for line in str(problem).splitlines() if line.strip()]
    first, *others = found or [repr(problem)]
    return in_short(f"{first} {others[0]}" if first.endswith(":") and others else first, 300)
