"""Subjects for tests, one for each task, and the same models in plain transformers.

`subject(task)` is for Attlas; `plain(task)` is another copy of the same model, on eager attention,
for answers that are computed without Attlas. Both are shared: do not change them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

import numpy as np
import tiny
import torch
import transformers
from PIL import Image
from torch import Tensor

from attlas import Subject
from attlas.methods import METHODS
from attlas.models.encoding.request import Request

LONG, SHORT, OTHER = (
    "the film was not good",
    "a cat sat",
    "my dog was not kind",
)
QUESTION = "who wrote it"
LABELLED = (
    "sequence classification",
    "multi-label",
    "regression",
    "next sentence",
    "token classification",
    "image classification",
)


def picture(seed: int) -> Image.Image:
    """Coloured noise."""
    pixels = np.random.default_rng(seed).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


# Texts for each task. The first two differ in length.
TEXTS: dict[str, list[Any]] = {
    "sequence classification": [LONG, SHORT, OTHER],
    "multi-label": [LONG, SHORT, OTHER],
    "regression": [LONG, SHORT, OTHER],
    "next sentence": [(LONG, SHORT), (SHORT, SHORT), (OTHER, SHORT)],
    "token classification": [LONG, SHORT, OTHER],
    "question answering": [(QUESTION, LONG), (QUESTION, SHORT), (QUESTION, OTHER)],
    "masked lm": ["the film was [MASK] good", "a [MASK] sat", "my [MASK] was not kind"],
    "causal lm": [LONG, SHORT, OTHER],
    "sequence to sequence": [LONG, SHORT, OTHER],
    "image classification": [picture(0), picture(1), picture(2)],
}
# With a prefix, an encoder–decoder need not first generate its own output, which is slow.
ASKED: dict[str, dict[str, Any]] = {"sequence to sequence": {"prefix": "Das Haus"}}

# The tasks whose model a method refuses with an UnsupportedModelError.
REFUSES: dict[str, set[str]] = {
    name: {"sequence to sequence"} for name in ("alti", "decompx", "globenc")
}


# Tasks whose models or readouts are met nowhere else; the others are other heads of one encoder.
APART = (
    "sequence classification",
    "token classification",
    "causal lm",
    "sequence to sequence",
    "image classification",
)
# One method for each way of asking a model.
WAYS = (
    "raw_attention",
    "gradient_attention",
    "integrated_gradients",
    "alti",
    "attn_lrp",
    "value_zeroing",
    "leave_one_out",
)


def in_short(
    pairs: Iterable[tuple[str, str]], apart: Collection[str] = APART
) -> list[tuple[str, str]]:
    """Of models and methods: every method with the models apart, every model with the ways."""
    return [(model, method) for model, method in pairs if model in apart or method in WAYS]


def takes(method: str, task: str) -> bool:
    """Whether a method works on the model of a task."""
    return task not in REFUSES.get(method, set())


@cache
def subject(task: str) -> Subject:
    """The subject of a task."""
    return Subject(*tiny.subject_parts(task))


@cache
def plain(task: str) -> transformers.PreTrainedModel:
    """The same model, on eager attention."""
    return on_eager(tiny.subject_parts(task)[0])


def on_eager(model: transformers.PreTrainedModel) -> transformers.PreTrainedModel:
    """The model with eager attention in all its submodels."""
    for module in model.modules():
        if isinstance(module, transformers.PreTrainedModel):
            module.set_attn_implementation("eager")
    return model


# Small numbers of steps: tests check whether a method is right, not how precise it is.
FEW = {"samples": 64, "steps": 6, "probes": 8}


def few(method: str) -> dict[str, int]:
    """Options of a method that keep its work small."""
    known = METHODS[method].options if method in METHODS.names() else {}
    return {name: value for name, value in FEW.items() if name in known}


def ask(task: str, text: Any = None, **asked: Any) -> Any:
    """The question of one text."""
    given = TEXTS[task][0] if text is None else text
    (question,) = subject(task).ask([given], Request(**{**ASKED.get(task, {}), **asked}))
    return question


def small(family: str, head: str, kind: str = "wordpiece", **settings: Any) -> Subject:
    """A subject of any family, with the vocabulary of one of the tiny tokenizers."""
    return Subject(*tiny.text_subject(family, head, kind, **settings))


def arguments(task: str, text: Any, prefix: str | None = None, extra: tuple[int, ...] = ()) -> Any:
    """The arguments of the plain model; `extra` are token ids after the text or the prefix."""
    tokenizer = subject(task).tokenizer
    if task == "image classification":
        return dict(tokenizer(images=text, return_tensors="pt"))
    given = dict(tokenizer(*(text if isinstance(text, tuple) else (text,)), return_tensors="pt"))
    more = torch.tensor([extra], dtype=torch.long)
    if prefix is not None:
        ids = tokenizer(text_target=prefix, add_special_tokens=False)["input_ids"]
        start = plain(task).config.decoder_start_token_id
        given["decoder_input_ids"] = torch.cat([torch.tensor([[start, *ids]]), more], dim=1)
    elif extra:
        ids = torch.cat([given["input_ids"], more], dim=1)
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return given


def logits(task: str, given: Any) -> Tensor:
    """The output of the plain model for one input: `[choice]`, or `[place, choice]`."""
    with torch.no_grad():
        output = plain(task)(**given)
    if task == "question answering":
        return torch.stack([output.start_logits[0], output.end_logits[0]])
    return output.logits[0]


def attention_of(output: Any) -> dict[str, tuple[Tensor, ...]]:
    """The attention that a model returned, by the kind of its sites, lowest layer first."""
    if "encoder_attentions" in output:
        names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions"}
        names["cross"] = "cross_attentions"
        return {kind: output[name] for kind, name in names.items()}
    return {"only": output["attentions"]}


def random_attention(*shape: int, seed: int = 0, causal: bool = False) -> Tensor:
    """Rows that sum to one, `[..., query, key]`, in float64."""
    generator = torch.Generator().manual_seed(seed)
    scores = 2 * torch.randn(*shape, generator=generator, dtype=torch.float64)
    if causal:
        scores = scores.masked_fill(~torch.ones(shape[-2:], dtype=torch.bool).tril(), -torch.inf)
    return scores.softmax(-1)
