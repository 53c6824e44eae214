"""Recurrent models as weights over fixed states: their answers, and what each token matters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.mathematics.divergences import jensen_shannon, total_variation
from attlas.mathematics.other_weights import Answer
from attlas.mathematics.ranking import roc_auc
from attlas.models.recurrent.batches import Batch, TextTable
from attlas.shapes import PaddedMarks, PaddedRows

ROWS = 256  # texts at once
TOKENS = 2**16  # of texts without one of their tokens, at once
KEPT_DIGITS = 6  # of a weight or a probability
ON_GPU = 4  # times as many texts, which keep a GPU busy


@dataclass(frozen=True, eq=False)
class FixedReading:
    """Some texts whose states stay fixed: the model's weights, and its answer under any others."""

    batch: Batch
    weights: PaddedRows
    free: PaddedMarks  # the places that may have weight: words, or sentences
    clean: Tensor  # the model's own answer, `[text, choice]`
    answer: Answer

    @property
    def predicted(self) -> Tensor:
        """The number of the predicted class, `[text]`."""
        return self.clean.argmax(dim=-1)

    @property
    def largest(self) -> Tensor:
        """The largest weight, `[text]`."""
        return self.weights.amax(dim=-1)


def readings(model: Any, table: TextTable) -> Iterator[FixedReading]:
    """Read all texts of a table, the shortest first; without gradients of the model."""
    model.eval()
    rows = ROWS * ON_GPU if table.ids.is_cuda else ROWS
    if model.config.sentences:  # it lays out every sentence as long as the longest
        rows = ROWS // ON_GPU
    for batch in table.in_order(rows):
        yield read_batch(model, batch)


@torch.no_grad()
def read_batch(model: Any, batch: Batch) -> FixedReading:
    """Run the encoder and the attention once."""
    states = model.encode(**batch.arguments)
    weights = model.weigh(states)

    def answer(copies: Tensor) -> Tensor:
        logits = model.read(states, copies.transpose(0, 1))
        found: Tensor = logits.softmax(dim=-1).transpose(0, 1)
        return found

    clean = answer(weights[None])[0]
    return FixedReading(batch, weights, states.visible, clean, answer)


def gradient_importance(model: Any, batch: Batch) -> PaddedRows:
    """|gradient · vector| of each token, with the attention cut from the graph.

    The gradient is that of the predicted class's probability; of two classes, both give the same.
    The sum over features comes before the absolute value, as in Jain and Wallace's code: it is the
    derivative along the token's own vector, so terms cancel within a token.
    """
    vectors, slope = _vectors_and_slope(model, batch)
    return (vectors * slope).sum(dim=-1).abs()


def gradient_along(model: Any, batch: Batch) -> PaddedRows:
    """|gradient · vector| divided by the length of the vector: long vectors count no more."""
    vectors, slope = _vectors_and_slope(model, batch)
    lengths = torch.linalg.vector_norm(vectors, dim=-1)
    return (vectors * slope).sum(dim=-1).abs() / torch.where(lengths > 0, lengths, 1.0)


def gradient_size(model: Any, batch: Batch) -> PaddedRows:
    """The length of the gradient on each token's vector, with the attention cut from the graph."""
    _, slope = _vectors_and_slope(model, batch)
    found: Tensor = torch.linalg.vector_norm(slope, dim=-1)
    return found


def _vectors_and_slope(model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    vectors = model.vectors(batch.input_ids).detach().requires_grad_()
    with torch.enable_grad():
        states = model.encode(**batch.arguments, inputs_embeds=vectors)
        logits = model.read(states, model.weigh(states).detach())
        sure = logits.softmax(dim=-1).amax(dim=-1).sum()
        (slope,) = torch.autograd.grad(sure, [vectors])
    return vectors.detach(), slope


@torch.no_grad()
def leave_one_out(model: Any, reading: FixedReading, pad: int) -> PaddedRows:
    """How far the answer moves, in total variation, when a token is deleted from its text."""
    batch = reading.batch
    text, token = reading.free.nonzero(as_tuple=True)
    found = torch.zeros_like(reading.weights)
    length = batch.input_ids.shape[1]
    step = max(1, TOKENS * (ON_GPU**2 if token.is_cuda else 1) // length)
    places = torch.arange(length - 1, device=token.device)
    for start in range(0, len(text), step):
        rows, gone = text[start : start + step], token[start : start + step]
        kept = places + (places >= gone[:, None])
        ids = batch.input_ids[rows].gather(1, kept)
        logits = model(
            input_ids=ids,
            attention_mask=(ids != pad).long(),
            token_type_ids=batch.token_type_ids[rows].gather(1, kept),
        ).logits
        found[rows, gone] = total_variation(logits.softmax(dim=-1), reading.clean[rows])
    return found


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says on every text of a table: its weights and its probabilities."""

    weights: Tensor  # [text, token], zero where there is nothing to see
    sure: Tensor  # [text, choice]


def answers_of(model: Any, table: TextTable) -> Answers:
    """The weights and probabilities of a model on all texts of a table, in their order."""
    weights = torch.zeros(table.ids.shape, device=table.ids.device)
    sure = weights.new_zeros((len(table), model.config.num_labels))
    for reading in readings(model, table):
        rows = reading.batch.numbers
        weights[rows, : reading.weights.shape[1]] = reading.weights
        sure[rows] = reading.clean
    return Answers(weights, sure)


def even_weights(weights: Tensor) -> Tensor:
    """The same weight for every token that has any."""
    seen = (weights > 0).float()
    return seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)


def distances(one: Answers, other: Answers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each text, the change of the answer and the divergence of the attention."""
    change = total_variation(one.sure.double(), other.sure.double())
    apart = jensen_shannon(one.weights.double(), other.weights.double())
    return change.cpu().numpy(), apart.cpu().numpy()


def quality(sure: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy, and for two classes the AUC and F1 of the second."""
    predicted = sure.argmax(axis=1)
    found = {"accuracy": float((predicted == labels).mean())}
    if sure.shape[1] == 2:
        right = float(((predicted == 1) & (labels == 1)).sum())
        found["auc"] = float(roc_auc(sure[:, 1], labels == 1))
        found["f1"] = 2 * right / max(1.0, float((predicted == 1).sum() + (labels == 1).sum()))
    return found


@dataclass(frozen=True, eq=False)
class SeedDistances:
    """How far the models of other seeds are from one, text by text: medians over these seeds."""

    jsd: NDArray[np.float64]
    change: NDArray[np.float64]
    largest: NDArray[np.float64]  # weight of the one


def seed_distances(parts: Sequence[Mapping[str, Any]], base: int) -> SeedDistances:
    """The attention of the model of one seed against those of all others."""
    longest = max(len(row) for part in parts for row in part["weights"])
    own = _answers(parts[base], longest)
    others = (_answers(part, longest) for at, part in enumerate(parts) if at != base)
    found = [distances(own, other) for other in others]
    change, jsd = (np.median([each[side] for each in found], axis=0) for side in (0, 1))
    return SeedDistances(jsd, change, own.weights.amax(dim=-1).numpy())


def weight_rows(found: Answers) -> list[list[float]]:
    """The weights of each text, without the end of the row where there are none."""
    rows = found.weights.double().cpu().numpy().round(KEPT_DIGITS)
    lengths = [int(np.flatnonzero(row).max(initial=-1)) + 1 for row in rows]
    return [row[:length].tolist() for row, length in zip(rows, lengths, strict=True)]


def _answers(part: Mapping[str, Any], longest: int) -> Answers:
    """What `pair_figures` kept of a model; weights that were rounded sum to one again."""
    rows = np.array([[*row, *[0.0] * (longest - len(row))] for row in part["weights"]])
    rows /= np.maximum(rows.sum(axis=1, keepdims=True), 1e-12)
    return Answers(torch.from_numpy(rows), torch.tensor(part["sure"], dtype=torch.float64))
