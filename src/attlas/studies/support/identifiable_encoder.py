"""Encoders of one layer whose heads are joined as usual, or wide and added.

Bhardwaj et al., "More Identifiable yet Equally Performant Transformers for Text Classification",
ACL 2021: with values as wide as the model and heads added, weights are determined by the output for
texts of up to that many tokens.
"""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attlas.data.example import Example
from attlas.embedded.training.train_facts import PAD, stacked
from attlas.mathematics.null_space import ranks, rounding
from attlas.models.teaching.identifiable_layer import added, added_heads
from attlas.results import Claim, ComparedTable
from attlas.studies.support.findings import (
    at_least,
    at_most,
    compared,
    decided,
    in_share,
    over_seeds,
    share_of,
)
from attlas.studies.support.small_transformer import LONGEST, Architecture, Lesson, teach

WIDTH, HEADS, KEYS, INNER = 32, 4, 16, 256
DROPOUT = 0.1
AT_ONCE = 256  # texts
BHARDWAJ = "Bhardwaj et al. 2021"


class Encoder(nn.Module):
    """One layer of attention and feed-forward, read at the first token."""

    def __init__(self, pieces: int, labels: int, value_width: int, mixing: Tensor | None) -> None:
        super().__init__()
        self.pieces = nn.Embedding(pieces, WIDTH, padding_idx=PAD)
        self.places = nn.Embedding(LONGEST, WIDTH)
        self.query, self.key = (nn.Linear(WIDTH, HEADS * KEYS) for _ in range(2))
        self.value = nn.Linear(WIDTH, HEADS * value_width)
        # What turns the output of each head into that of the layer, `[head, value, width]`; heads
        # that are added need none.
        self.mixing = None if mixing is None else nn.Parameter(mixing)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.feed = nn.Sequential(nn.Linear(WIDTH, INNER), nn.ReLU(), nn.Linear(INNER, WIDTH))
        self.drop = nn.Dropout(DROPOUT)
        self.answer = nn.Linear(WIDTH, labels)

    def transformed(self, states: Tensor) -> Tensor:
        """T: what each head adds up by its weights, `[batch, head, token, width]`."""
        values = _by_head(self.value(states))
        return values if self.mixing is None else values @ self.mixing

    def embed(self, ids: Tensor) -> Tensor:
        """The vectors of the tokens with those of their places."""
        places = torch.arange(ids.shape[1], device=ids.device)
        vectors: Tensor = self.pieces(ids) + self.places(places)
        return vectors

    def forward(self, ids: Tensor, attention_mask: Tensor) -> Any:
        """The logits of each text."""
        states = self.drop(self.embed(ids))
        query, key = _by_head(self.query(states)), _by_head(self.key(states))
        mask = added(~attention_mask.bool(), states)[:, None, None]
        mixed = added_heads(query, key, self.transformed(states), mask)
        states = self.first(states + self.drop(mixed))
        states = self.second(states + self.drop(self.feed(states)))
        return SimpleNamespace(logits=self.answer(states[:, 0]))


def usual(pieces: int, labels: int) -> Encoder:
    """Heads of width / heads that are joined: the slices of one output matrix."""
    width = WIDTH // HEADS
    return Encoder(pieces, labels, width, torch.randn(HEADS, width, WIDTH) / WIDTH**0.5)


def identifiable(pieces: int, labels: int) -> Encoder:
    """Heads as wide as the model, added."""
    return Encoder(pieces, labels, WIDTH, None)


KINDS = {"usual": usual, "identifiable": identifiable}


def _by_head(states: Tensor) -> Tensor:
    parts: Tensor = states.unflatten(-1, (HEADS, -1)).transpose(1, 2)
    return parts


def compare_encoders(
    lesson: Lesson, tested: Sequence[Example], steps: int, seed: int, device: str | None
) -> dict[str, Any]:
    """Train both kinds on the same lesson: accuracy, and length and nullity of each text."""
    found = {}
    for name, make in KINDS.items():
        torch.manual_seed(seed)
        model = make(lesson.tokenizer.get_vocab_size(), len(lesson.labels))
        model.to(torch.device(device or "cpu"))
        teach(model, lesson, Architecture(steps=steps), seed)
        found[name] = judge_encoder(model.eval(), lesson, tested)
    return found


@torch.no_grad()
def judge_encoder(model: Encoder, lesson: Lesson, tested: Sequence[Example]) -> dict[str, Any]:
    """Accuracy on these texts, and of each its tokens and the mean nullity of its heads."""
    device = model.answer.weight.device
    encoded = lesson.tokenizer.encode_batch([str(each.text) for each in tested])
    rows = [each.ids for each in encoded]
    right, freedom = [], []
    for start in range(0, len(rows), AT_ONCE):
        ids = stacked(rows[start : start + AT_ONCE], PAD, str(device))
        seen = ids != PAD
        said = model(ids, attention_mask=seen.long()).logits.argmax(dim=-1).tolist()
        right += [
            lesson.labels[one] == str(each.label)
            for one, each in zip(said, tested[start : start + AT_ONCE], strict=True)
        ]
        values = model.transformed(model.embed(ids))
        visible = seen[:, None, None].expand(-1, HEADS, -1, -1)
        free = visible.sum(dim=-1)[..., 0] - ranks(values, visible, rounding(values))
        lengths = seen.sum(dim=1).tolist()
        freedom += [
            list(pair) for pair in zip(lengths, free.double().mean(1).tolist(), strict=True)
        ]
    return {"accuracy": float(np.mean(right)), "freedom": freedom}


def claims_on_encoders(found: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """The claims on the identifiable encoder, over seeds."""
    gain = [each["identifiable"]["accuracy"] - each["usual"]["accuracy"] for each in found]
    within = [
        free == 0
        for each in found
        for length, free in each["identifiable"]["freedom"]
        if length <= WIDTH
    ]
    fewer = [_nullity(each["identifiable"]) - _nullity(each["usual"]) for each in found]
    return [
        decided(
            "The identifiable encoder is as accurate as the usual one",
            BHARDWAJ,
            at_least(-0.01),
            over_seeds(gain),
            found="The figure is its accuracy less that of the usual one.",
        ),
        decided(
            "Its weights are determined for texts no longer than the model is wide",
            BHARDWAJ,
            in_share(f"no text of at most {WIDTH} tokens has a null space"),
            share_of(within),
            over="texts",
        ),
        decided(
            "Its null space is smaller than that of the usual encoder",
            BHARDWAJ,
            at_most(-1.0),
            over_seeds(fewer),
            found="The figure is the mean number of free dimensions, less that of the usual one.",
        ),
    ]


def _nullity(found: Mapping[str, Any]) -> float:
    return float(np.mean([free for _, free in found["freedom"]]))


def encoder_table(found: Sequence[Mapping[str, Any]]) -> ComparedTable:
    """Accuracy and free dimensions of both kinds."""
    ours = {}
    for kind in KINDS:
        ours[f"{kind}: accuracy"] = over_seeds([each[kind]["accuracy"] for each in found])
        ours[f"{kind}: free dimensions"] = over_seeds([_nullity(each[kind]) for each in found])
    reading = "Encoders of one layer with four heads; free dimensions are a mean over heads."
    return compared("The usual and the identifiable encoder", reading, ours, {})
