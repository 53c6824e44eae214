"""Similarity: how alike two texts are to an encoder without a head, as the cosine of their vectors.

One text is explained while the vector of the other is held fixed.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.encoding.inputs import COMPARED, Inputs
from attlas.models.encoding.request import Request
from attlas.models.encoding.text_inputs import encode_text
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.model_facts import ModelFacts
from attlas.models.facts.places import file_of
from attlas.shapes import Logits

POOLINGS = ("mean_tokens", "cls_token", "lasttoken")
KNOWN = ("Transformer", "Pooling", "Normalize")  # what a folder of sentence-transformers may chain
LONGEST = 60  # characters of the other text, in a note


def encode_compared(facts: ModelFacts, pair: Any, request: Request) -> Inputs:
    """Encode the first text of a pair, with the vector of the second; one text has no vector."""
    if not isinstance(pair, tuple):
        return encode_text(facts, pair, request)
    if facts.has_decoder or facts.reads_images:
        raise UnsupportedModelError(
            f"{type(facts.model).__name__} cannot compare texts: that is for models of one stack "
            "that reads text"
        )
    if len(pair) != 2:
        raise UsageError(f"two texts are compared, not {len(pair)}")
    own, other = (encode_text(facts, each, request) for each in pair)
    with evaluation_mode(facts.model), torch.no_grad():
        found = facts.model(**other.arguments).last_hidden_state
    vector = pool(found, other.arguments, pooling_of(facts))
    shown = str(pair[1])
    shown = shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
    note = f"explains the first text; the second, {shown!r}, is held fixed: swap them to explain it"
    return replace(
        own,
        arguments={**own.arguments, COMPARED: vector[:, None]},
        texts=(pair,),
        notes=((*own.notes[0], note),),
    )


def similarity(hidden: Tensor, arguments: Mapping[str, Tensor], pooling: str) -> Logits:
    """The cosine of each text's vector and the one that it is compared with, as one choice.

    There may be several copies of the batch in the hidden states, one after the other.
    """
    copies = len(hidden) // len(arguments[COMPARED])
    given = {
        name: arguments[name].repeat(copies, *[1] * (arguments[name].ndim - 1))
        for name in (COMPARED, "attention_mask")
        if name in arguments
    }
    own, other = pool(hidden, given, pooling), given[COMPARED][:, 0]
    lengths = own.norm(dim=-1) * other.norm(dim=-1)
    cosine: Tensor = (own * other).sum(dim=-1) / lengths
    return cosine[:, None, None]


def pool(hidden: Tensor, arguments: Mapping[str, Tensor], pooling: str) -> Tensor:
    """The vector of each text, `[batch, feature]`, from `[batch, token, feature]`."""
    if pooling == "cls_token":
        return hidden[:, 0]
    mask = arguments.get("attention_mask")
    weights = torch.ones_like(hidden[..., 0]) if mask is None else mask.to(hidden.dtype)
    if pooling == "lasttoken":
        last = weights.flip(1).argmax(dim=1)
        return hidden[torch.arange(len(hidden)), hidden.shape[1] - 1 - last]
    return (hidden * weights[..., None]).sum(dim=1) / weights.sum(dim=1, keepdim=True)


def pooling_of(facts: ModelFacts) -> str:
    """How a model's vectors become one; the mean unless its files say otherwise."""
    for each in _read(facts.name, "modules.json") or ():
        kind = str(each.get("type", "")).rpartition(".")[2]
        if kind not in KNOWN:
            raise UnsupportedModelError(
                f"{facts.name} adds a {kind} to its encoder, which cannot be opened; "
                f"allowed: {', '.join(KNOWN)}"
            )
    settings = _read(facts.name, "1_Pooling/config.json") or {}
    chosen = [name.removeprefix("pooling_mode_") for name, on in settings.items() if on is True]
    chosen = [name for name in chosen if name != "include_prompt"] or ["mean_tokens"]
    if len(chosen) > 1 or chosen[0] not in POOLINGS:
        raise UnsupportedModelError(
            f"{facts.name} makes one vector by {' and '.join(chosen)}; "
            f"allowed: {', '.join(POOLINGS)}"
        )
    return str(chosen[0])


def _read(model: str, name: str) -> Any:
    path = file_of(model, name)
    return None if path is None else json.loads(path.read_text("utf-8"))
