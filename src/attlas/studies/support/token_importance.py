"""Token importance, and how far the attention of each layer agrees with it, text by text."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from attlas.mathematics.rank_agreement import spearman
from attlas.methods.leave_one_out import leave_one_out
from attlas.methods.support.flow import lay_stack
from attlas.methods.support.flow_maps import flow_maps
from attlas.methods.support.token_rows import fuse_heads
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.states.embeddings import embedding_gradients
from attlas.models.tap.call import Call

IMPORTANCES = ("blank-out", "input gradient")
READINGS = ("raw", "rollout", "flow")
RESIDUAL = 0.5
FEWEST = 3  # content tokens of a text that can be ranked

Maps = NDArray[np.float64]  # `[layer, position, token]`, heads averaged


def blank_out(question: Question) -> NDArray[np.float64]:
    """|p(x) − p(x with the token masked)|, `[text, token]`."""
    found = leave_one_out(question, removal="mask").scores
    sizes: NDArray[np.float64] = found.double().abs().cpu().numpy()
    return sizes


def input_gradient(question: Question) -> NDArray[np.float64]:
    """|Σ over features of the logit's gradient on the embedding|, `[text, token]`."""
    (stream,), _ = embedding_gradients(question, "logit")
    sizes: NDArray[np.float64] = stream.gradient.double().sum(dim=-1).abs().cpu().numpy()
    return sizes


def read_maps(question: Question) -> tuple[NDArray[np.float64], list[int]]:
    """The attention of each text, `[text, layer, position, token]`, and where it is read."""

    def keep(call: Call) -> Tensor:
        return fuse_heads(call.weights.detach(), "mean").double().cpu()

    folded = fold_attention(question, keep)
    stacked = np.stack([each.numpy() for each in folded.held], axis=1)
    return stacked, folded.readout.argmax(dim=1).tolist()


def raw_rows(maps: Maps, position: int) -> NDArray[np.float64]:
    """The row of a position in each layer, `[layer, token]`."""
    return maps[:, position]


def rollout_rows(maps: Maps, position: int) -> NDArray[np.float64]:
    """The row of a position, rolled out from each layer down to the tokens, `[layer, token]`."""
    mixing, rows = np.eye(maps.shape[-1]), []
    for layer in maps:
        mixing = (RESIDUAL * np.eye(len(layer)) + (1 - RESIDUAL) * layer) @ mixing
        rows.append(mixing[position])
    return np.stack(rows)


def flow_rows(maps: Maps, position: int) -> NDArray[np.float64]:
    """The flow from a position of each layer to each token, `[layer, token]`; rows sum to one."""
    depths = range(1, len(maps) + 1)
    pipes = [lay_stack(list(maps[:depth]), RESIDUAL, maps.shape[-1]) for depth in depths]
    tops = np.zeros((len(pipes), maps.shape[1]), dtype=bool)
    tops[:, position] = True
    return np.stack([each[position] for each in flow_maps(pipes, tops, 1)])


def agreement_by_layer(
    questions: Sequence[Question], readings: Sequence[str] = READINGS
) -> dict[str, NDArray[np.float64]]:
    """Spearman's ρ of each reading with each importance, `[text, layer]`, by both names.

    Special tokens are left out; a text with too few others is NaN.
    """
    rows_of = {"raw": raw_rows, "rollout": rollout_rows, "flow": flow_rows}
    found: dict[str, list[list[float]]] = {}
    for question in questions:
        importances = dict(
            zip(IMPORTANCES, (blank_out(question), input_gradient(question)), strict=True)
        )
        maps, places = read_maps(question)
        for row, tokens in enumerate(question.inputs.tokens):
            content = np.array([not each for each in tokens.special])
            for reading in readings:
                scores = rows_of[reading](maps[row], places[row])[:, content]
                for name, values in importances.items():
                    ranks = correlate(scores, values[row][content])
                    found.setdefault(f"{name}, {reading}", []).append(ranks)
    return {name: np.array(each) for name, each in found.items()}


def correlate(scores: NDArray[np.float64], importance: NDArray[np.float64]) -> list[float]:
    """Spearman's ρ of each row of scores with the importance; NaN where tokens are too few."""
    if len(importance) < FEWEST:
        return [float("nan")] * len(scores)
    return [spearman(each, importance) for each in scores]
