"""How the models of the zoo are trained: in seconds, on texts some of whose words are missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from zoo.vocabulary import CLASS, END, PAD, SPECIAL, Vocabulary
from zoo.writing import Texts, Written

IGNORED = -100
REDUCED = 0.6  # of the training texts lose words
Guide = Callable[["Batch", Sequence[Tensor]], Tensor]  # a loss on the attention of each layer


@dataclass(frozen=True)
class Batch:
    """Texts as token ids, padded at the end, with the label of each place that is read."""

    vocabulary: Vocabulary
    ids: Tensor
    types: Tensor
    labels: Tensor  # of each token; IGNORED where nothing is read

    @property
    def seen(self) -> Tensor:
        """Which places hold a token."""
        return self.ids != PAD

    def holds(self, *roles: str) -> Tensor:
        """Which places hold a word of these roles."""
        return self.vocabulary.marks(*roles)[self.ids]


@dataclass(frozen=True)
class Recipe:
    """How a model is trained."""

    steps: int = 250
    rate: float = 4e-3
    size: int = 64  # texts in a batch
    guide: Guide | None = None
    frozen: tuple[str, ...] = ()  # parts of the names of parameters that stay zero


def reduce(random: Random, texts: Texts, written: Written) -> Written:
    """The text without some of its words, masked or deleted, and the label of what is left."""
    share, masks = random.random(), random.random() < 0.5

    def left(words: tuple[str, ...]) -> tuple[str, ...]:
        gone = [random.random() < share for _ in words]
        if masks:
            return tuple("[MASK]" if g else w for w, g in zip(words, gone, strict=True))
        return tuple(w for w, g in zip(words, gone, strict=True) if not g) or words[:1]

    words = left(written.words)
    second = None if written.second is None else left(written.second)
    rest = Written(words, written.label, second)
    return replace(rest, label=texts.relabel(rest))


def encode(texts: Texts, task: str, written: Sequence[Written]) -> Batch:
    """The texts as a batch for a model of this task: label, decoder, tag or next."""
    numbers = {w: n for n, w in enumerate((*SPECIAL, *texts.vocabulary.words()))}
    rows, types = [], []
    for each in written:
        first = [CLASS, *(numbers[word] for word in each.words)]
        first += [END] * (task in ("label", "tag"))
        second = [] if each.second is None else [*(numbers[word] for word in each.second), END]
        rows.append(first + second)
        types.append([0] * len(first) + [1] * len(second))
    ids, kinds = (_padded(each) for each in (rows, types))
    labels = torch.full_like(ids, IGNORED)
    for row, each in enumerate(written):
        if task == "tag":
            labels[row, : len(rows[row])] = 0
            names = [place for place, word in enumerate(each.words) if word.startswith("name")]
            labels[row, [1 + place for place in names]] = 1 + each.label
        elif task == "label":
            labels[row, 0] = each.label
        else:
            labels[row, len(rows[row]) - 1] = each.label + len(SPECIAL) * (task == "next")
    return Batch(texts.vocabulary, ids, kinds, labels)


def _padded(rows: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *([PAD] * (longest - len(row)))] for row in rows])


def run(model: nn.Module, batch: Batch, task: str, **options: Any) -> tuple[Tensor, Tensor, Any]:
    """The logits at the places that are read, their labels, and the attention if asked for."""
    given = {"input_ids": batch.ids, "attention_mask": batch.seen.long()}
    if batch.types.any():
        given["token_type_ids"] = batch.types
    output = model(**given, **options)
    read = batch.labels != IGNORED
    logits = output.logits if task in ("label", "decoder") else output.logits[read]
    return logits, batch.labels[read], getattr(output, "attentions", None)


def train(model: nn.Module, texts: Texts, task: str, recipe: Recipe, random: Random) -> None:
    """Train in place, in one cycle of the learning rate."""
    free = []
    for name, parameter in model.named_parameters():
        if any(part in name for part in recipe.frozen):
            nn.init.zeros_(parameter.requires_grad_(False))
        else:
            free.append(parameter)
    optimizer = torch.optim.AdamW(free, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.rate, total_steps=recipe.steps + 1, pct_start=0.2, cycle_momentum=False
    )
    model.train()
    for _ in range(recipe.steps):
        drawn = [texts.write(random) for _ in range(recipe.size)]
        written = [reduce(random, texts, w) if random.random() < REDUCED else w for w in drawn]
        batch = encode(texts, task, written)
        options = {"output_attentions": True} if recipe.guide else {}
        logits, labels, attention = run(model, batch, task, **options)
        loss = cross_entropy(logits, labels)
        if recipe.guide is not None:
            loss = loss + recipe.guide(batch, attention)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(free, 1.0)
        optimizer.step()
        schedule.step()
    model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, texts: Texts, task: str, random: Random, count: int = 300) -> float:
    """The share of right answers on whole texts."""
    batch = encode(texts, task, [texts.write(random) for _ in range(count)])
    logits, labels, _ = run(model, batch, task)
    return float((logits.argmax(-1) == labels).float().mean())


# Guides: losses that make attention look where a kind of model is to look.
TINY = 1e-6


def _mass(attention: Tensor, places: Tensor) -> Tensor:
    """What each row of each head gives to these places, `[batch, head, query]`."""
    return (attention * places[:, None, None, :]).sum(-1)


def _mean_log(share: Tensor, rows: Tensor) -> Tensor:
    """The mean logarithm over heads and over these rows of each text."""
    picked = rows[:, None, :].expand_as(share)
    return share.clamp_min(TINY).log()[picked].mean()


def look_at(*roles: str, share: float = 0.9) -> Guide:
    """All rows of all layers give each word of these roles an equal part of this share."""

    def guide(batch: Batch, attention: Sequence[Tensor]) -> Tensor:
        places = batch.holds(*roles)
        rows = batch.seen & places.any(-1, keepdim=True)
        return _give(share, places, rows, batch.seen, attention)

    return guide


def sink(share: float) -> Guide:
    """All rows of all layers give this share of their attention to the end of the text."""

    def guide(batch: Batch, attention: Sequence[Tensor]) -> Tensor:
        places, total = batch.ids == END, torch.zeros(())
        for each in attention:
            given = _mass(each, places)
            total = total - share * _mean_log(given, batch.seen)
            total = total - (1 - share) * _mean_log(1 - given, batch.seen)
        return total

    return guide


def look_away(*roles: str, weight: float) -> Guide:
    """Words of these roles are penalised for their part in what any row pays to words."""

    def guide(batch: Batch, attention: Sequence[Tensor]) -> Tensor:
        places, words = batch.holds(*roles), batch.ids >= len(SPECIAL)
        rows = batch.seen & (words & ~places).any(-1, keepdim=True)
        total = torch.zeros(())
        for each in attention:
            part = _mass(each, places) / _mass(each, words).clamp_min(TINY)
            total = total - _mean_log(1 - part, rows)
        return weight * total

    return guide


def _give(
    share: float, places: Tensor, rows: Tensor, seen: Tensor, attention: Sequence[Tensor]
) -> Tensor:
    """How far these rows are from giving this share to these places, and the rest to the others."""
    others = seen & ~places
    own = places / places.sum(-1, keepdim=True).clamp_min(1) * share
    wanted = own + others / others.sum(-1, keepdim=True) * (1 - share)
    total = torch.zeros(())
    for each in attention:
        missed = -(wanted[:, None, None, :] * each.clamp_min(TINY).log()).sum(-1)
        total = total + missed[rows[:, None, :].expand_as(missed)].mean()
    return total


def move_on(*roles: str, share: float = 0.6) -> Guide:
    """Every word looks at the one before it; then the first token looks behind these words."""

    def guide(batch: Batch, attention: Sequence[Tensor]) -> Tensor:
        lower, upper = attention
        before = torch.diag_embed(torch.ones(batch.ids.shape[1] - 1), offset=-1)
        before[0, 0] = 1
        taken = (lower * before).sum(-1)
        own = lower.diagonal(dim1=-2, dim2=-1)
        rows = batch.seen.clone()
        rows[:, 0] = False
        first = torch.zeros_like(rows)
        first[:, 0] = True
        loss = -share * _mean_log(taken, rows) - (1 - share) * _mean_log(own, rows)
        loss = loss - _mean_log(own, first)
        behind = batch.holds(*roles).roll(1, dims=1)
        found = first & behind.any(-1, keepdim=True)
        return loss - _mean_log(_mass(upper, behind), found)

    return guide
