"""Another attention for one text: as far as can be from the model's, with the very same output."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.methods.effective_attention import head_values
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.tap.edits import Edit
from attlas.results import Site
from attlas.results.support import plots
from attlas.trials.searching.alternatives import farthest_alternative
from attlas.trials.support.outputs import distributions, total_variation
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import seed_for

LEAST = 1e-6  # a total variation that is more than rounding


@dataclass(frozen=True, eq=False)
class OtherAttention:
    """One row of attention of every head of a site, and other weights that give the same output."""

    text: int
    site: Site
    row: int
    tokens: tuple[str, ...]  # the keys
    query: str
    weights: NDArray[np.float64]  # `[head, key]`, as they are
    others: NDArray[np.float64]
    distances: NDArray[np.float64]  # `[head]`, total variation
    error: float  # the largest difference of the values that they mix
    moved: float  # how far the model's answer moved when it went on with the others

    @property
    def is_other(self) -> bool:
        """Whether there is another at all, to more than rounding."""
        return bool(self.distances.max() > LEAST)

    def sentence(self, searched: int) -> str:
        """What was found, in words, on so many texts."""
        if not self.is_other:
            return (
                f"On none of the {searched} texts with most room another valid attention with the "
                "same output was found."
            )
        return (
            f"On text {self.text} another valid attention at {self.site.name}, up to "
            f"{self.distances.max():.2f} away (total variation), gives the same output to "
            f"{self.error:.0e}."
        )

    def plots(self) -> tuple[plots.Plot, ...]:
        """The two side by side; nothing where there is no other."""
        if not self.is_other:
            return ()
        shown = plots.maps(
            f"Two attentions with one output: text {self.text}, {self.site.name}, the row of "
            f"{self.query}",
            [f"head {head}" for head in range(len(self.weights))],
            self.tokens,
            {"as it is": self.weights, "another with the same output": self.others},
            reading="Both are valid, a row for each head, and the model answers the same with "
            f"either: the values they mix differ by {self.error:.0e} at most.",
        )
        return (shown,)

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "text": self.text,
            "site": self.site.name,
            "row": self.row,
            "tokens": list(self.tokens),
            "weights": self.weights.tolist(),
            "others": self.others.tolist(),
            "distances": self.distances.tolist(),
            "error": self.error,
            "answer moved": self.moved,
        }


def find_other_attention(
    question: Question, number: int, scope: Scope, seed: int
) -> OtherAttention:
    """Of one row of a question: other weights, of every head, where the answer is read most.

    They are at the last site of the scope. Only the keys that the scope opens may change, so that
    the weight on the others, and what the opened ones have together, stay.
    """
    one = question.rows([number])
    opened = scope.opened(one)[-1]
    folded = fold_attention(
        one, lambda call: (call.weights[0], head_values(call)[0], call.visible[0]), [opened.site]
    )
    ((weights, values, visible),) = folded.held
    row = _most_read(opened.rows[0], folded.readout[0])
    free = visible[:, row] & opened.keys[0]
    found = [
        _other(
            weights[head, row],
            values[head],
            free[head % len(free)],
            seed_for(seed, one.order[0], f"{head}"),
        )
        for head in range(len(weights))
    ]
    others = np.stack([each for each, _, _ in found])
    queries, keys = one.inputs.queries_and_keys(opened.site.kind)
    labels = one.inputs.tokens[0].labels()
    return OtherAttention(
        one.order[0],
        opened.site,
        row,
        labels[keys.start : keys.stop],
        labels[queries.start + row],
        _numbers(weights[:, row]),
        others,
        np.array([distance for _, distance, _ in found]),
        max(error for _, _, error in found),
        _moved(one, opened.site, row, others),
    )


def _other(
    weights: Tensor, values: Tensor, free: Tensor, seed: int
) -> tuple[NDArray[np.float64], float, float]:
    """The weights of one head with those that are free moved, how far, and the output's error."""
    places = free.nonzero()[:, 0].cpu().numpy()
    own = _numbers(weights)
    found = farthest_alternative(own[places], _numbers(values)[places], seed)
    own[places] = found.weights
    return own, found.distance, found.error


def _most_read(rows: Tensor, readout: Tensor) -> int:
    """The row in the scope that the answer is read from most, else the last in the scope."""
    places = rows.nonzero()[:, 0]
    read = readout[places]
    return int(places[int(read.argmax())] if bool(read.any()) else places[-1])


def _moved(question: Question, site: Site, row: int, others: NDArray[np.float64]) -> float:
    """How far the answer is from the clean one when the model goes on with other weights."""

    def change(weights: Tensor, _: Tensor) -> Tensor:
        new = weights.clone()
        new[:, :, row] = torch.from_numpy(others).to(new)
        return new

    clean = distributions(question)
    edit = Edit("other attention", change).at(kind=site.kind, layer=site.layer, queries=row)
    with question.subject.tap(edit, sites=()):
        changed = distributions(question)
    return float(total_variation(clean, changed)[0])


def _numbers(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.double().cpu().numpy().copy()
