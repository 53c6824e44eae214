"""The training loop that the sentiment model and its teachers share."""

import math
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from attlas.embedded.training.sentiment_tokenizer import MASK, PAD, SPECIAL, Packed

WARM_UP = 0.05


@dataclass(frozen=True)
class SentimentPace:
    """How long and how fast to train.

    If `seconds` end the training early, the rate still falls to zero. A batch holds at most `rows`
    texts and `room` pieces.
    """

    steps: int
    seconds: float
    rate: float
    rows: int
    room: int

    def rate_at(self, progress: float) -> float:
        """The learning rate: up in a line, down in half a cosine."""
        if progress < WARM_UP:
            return self.rate * progress / WARM_UP
        return self.rate * (1 + math.cos(math.pi * (progress - WARM_UP) / (1 - WARM_UP))) / 2


@dataclass(frozen=True)
class Lessons:
    """Texts, how likely each is positive, and the teacher's inner vectors, where there are any."""

    texts: Packed
    positive: Tensor
    vectors: Tensor | None = None


def precision(device: str) -> AbstractContextManager[Any]:
    """Sixteen bits on a GPU, thirty-two elsewhere."""
    return torch.autocast(device, torch.bfloat16, enabled=device == "cuda")


def batches(
    lengths: Tensor, *, rows: int, room: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, int]]:
    """All texts once, in random batches of similar length, each with its longest length."""
    noise = torch.rand(len(lengths), generator=generator).to(lengths.device)
    order = torch.argsort(lengths + noise, descending=True)
    longest = lengths[order].tolist()
    starts = [0]
    while starts[-1] < len(order):
        starts.append(starts[-1] + max(1, min(rows, room // longest[starts[-1]])))
    for which in torch.randperm(len(starts) - 1, generator=generator).tolist():
        yield order[starts[which] : starts[which + 1]], longest[starts[which]]


def endless(
    texts: Packed, pace: SentimentPace, generator: torch.Generator
) -> Iterator[tuple[Tensor, int]]:
    """Batches of every text, without end."""
    while True:
        yield from batches(texts.lengths, rows=pace.rows, room=pace.room, generator=generator)


def hide(
    ids: Tensor, continues: Tensor, shares: Tensor, generator: torch.Generator | None = None
) -> Tensor:
    """The ids with a share of each text's words masked, each word as a whole."""
    words = (~continues[ids]).cumsum(dim=1) - 1
    drawn = torch.rand(ids.shape, generator=generator, device=ids.device)
    hidden = (drawn < shares[:, None]).gather(1, words.clamp(min=0))
    return torch.where(hidden & (ids >= len(SPECIAL)), MASK, ids)


def read_out(model: Any, ids: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """The logits and the mean of the last layer's vectors."""
    found = model(ids, attention_mask=present.long(), output_hidden_states=True)
    states = found.hidden_states[-1]
    weights = present[..., None].to(states.dtype)
    return found.logits, (states * weights).sum(1) / weights.sum(1)


def targets(positive: Tensor) -> Tensor:
    """The probability each label should have."""
    return torch.stack([1 - positive, positive], dim=1)


class Student:
    """A model in training: its loss is of the labels, and at first of the teacher's vectors too."""

    def __init__(self, model: Any, lessons: Lessons, continues: Tensor | None) -> None:
        self.model, self.lessons, self.continues = model, lessons, continues
        self.bridge = None
        if lessons.vectors is not None:
            sample = lessons.vectors[:200_000].float()
            self.centre, self.spread = sample.mean(0), sample.std(0) + 1e-3
            self.bridge = torch.nn.Linear(model.config.hidden_size, sample.shape[1])
            self.bridge.to(sample.device)

    def parameters(self) -> list[torch.nn.Parameter]:
        """All that is trained."""
        bridge = [] if self.bridge is None else list(self.bridge.parameters())
        return [*self.model.parameters(), *bridge]

    def loss(self, chosen: Tensor, longest: int, step: int, progress: float) -> Tensor:
        """Every second batch has up to half of each text's words masked, where pieces are known."""
        ids, present = self.lessons.texts.rows(chosen, longest, PAD)
        if self.continues is not None and step % 2:
            shares = torch.rand(len(ids), device=ids.device) / 2
            ids = hide(ids, self.continues, shares)
        logits, mean = read_out(self.model, ids, present)
        loss = cross_entropy(logits.float(), targets(self.lessons.positive[chosen]))
        if self.bridge is None or self.lessons.vectors is None:
            return loss
        wanted = (self.lessons.vectors[chosen].float() - self.centre) / self.spread
        return loss + (1 - progress) * mse_loss(self.bridge(mean).float(), wanted)


def fit(student: Student, pace: SentimentPace, *, device: str, seed: int) -> int:
    """Train in place and return the number of steps."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(
        student.parameters(), betas=(0.9, 0.98), weight_decay=0.01, fused=device == "cuda"
    )
    started, progress, step = time.monotonic(), 0.0, 0
    student.model.train()
    for step, (chosen, longest) in enumerate(endless(student.lessons.texts, pace, generator)):
        progress = max(step / pace.steps, (time.monotonic() - started) / pace.seconds)
        if progress >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = pace.rate_at(progress)
        with precision(device):
            loss = student.loss(chosen, longest, step, progress)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        if step % 500 == 0:
            print(f"step {step}: {loss.item():.4f}, {time.monotonic() - started:.0f} s", flush=True)
    student.model.eval()
    return step


@torch.no_grad()
def predict_logits(model: Any, texts: Packed, *, fill: int, room: int) -> tuple[Tensor, Tensor]:
    """The logit of POSITIVE over NEGATIVE of each text, and the mean of its last vectors."""
    count, device = len(texts.ends), texts.ends.device
    logits = torch.zeros(count, device=device)
    vectors = torch.zeros((count, model.config.hidden_size), device=device, dtype=torch.float16)
    whole = torch.Generator().manual_seed(0)
    for chosen, longest in batches(texts.lengths, rows=4096, room=room, generator=whole):
        found, mean = read_out(model, *texts.rows(chosen, longest, fill))
        logits[chosen] = (found[:, 1] - found[:, 0]).float()
        vectors[chosen] = mean.half()
    return logits, vectors
