"""BERT's layers computed by hand in numpy, with weights by name and loops as in the formulas.

Hidden states and attention come from transformers' own output, without Attlas.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.special import erf


class Layer:
    """One layer: its input, its output, its attention, and its weights."""

    def __init__(self, model: Any, number: int, states: Any, attentions: Any) -> None:
        self.weights = {
            name: value.detach().numpy()
            for name, value in model.bert.encoder.layer[number].named_parameters()
        }
        self.given = states[number][0].numpy()
        self.gave = states[number + 1][0].numpy()
        self.attention = attentions[number][0].numpy()
        self.eps = model.config.layer_norm_eps

    def named(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The matrix (or gain) and the bias of a module."""
        return self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]

    def mixed(self, vectors: np.ndarray) -> np.ndarray:
        """sum over heads of alpha[h, i, j] W_O^h v_j^h, `[i, j, feature]`, for values `[j, …]`."""
        heads, length, _ = self.attention.shape
        output, _ = self.named("attention.output.dense")
        width = output.shape[1] // heads
        total = np.zeros((length, length, output.shape[0]))
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            sent = vectors[:, part] @ output[:, part].T
            total += self.attention[head][:, :, None] * sent[None]
        return total

    def before_first_norm(self) -> np.ndarray:
        """The input of the first norm."""
        matrix, bias = self.named("attention.self.value")
        attended = self.mixed(self.given @ matrix.T + bias).sum(axis=1)
        return attended + self.named("attention.output.dense")[1] + self.given

    def after_first_norm(self) -> np.ndarray:
        """The output of the first norm."""
        return norm(self.before_first_norm(), *self.named("attention.output.LayerNorm"), self.eps)

    def inner(self) -> np.ndarray:
        """The input of the activation."""
        matrix, bias = self.named("intermediate.dense")
        return self.after_first_norm() @ matrix.T + bias

    def before_second_norm(self) -> np.ndarray:
        """The input of the second norm."""
        matrix, bias = self.named("output.dense")
        return gelu(self.inner()) @ matrix.T + bias + self.after_first_norm()


def layers_of(model: Any, inputs: Any) -> list[Layer]:
    """The layers of a BERT in float64 and on eager attention, for one input."""
    with torch.no_grad():
        output = model.bert(**inputs, output_hidden_states=True, output_attentions=True)
    count = model.config.num_hidden_layers
    return [
        Layer(model, number, output.hidden_states, output.attentions) for number in range(count)
    ]


def gelu(numbers: np.ndarray) -> np.ndarray:
    """GELU by its definition."""
    return numbers * (1 + erf(numbers / np.sqrt(2))) / 2


def norm(rows: np.ndarray, gain: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """Layer norm."""
    return linear_norm(rows, rows, gain, eps) + bias


def linear_norm(parts: np.ndarray, whole: np.ndarray, gain: np.ndarray, eps: float) -> np.ndarray:
    """g of parts `[i, …, feature]` with the spread of the whole, `[i, feature]`."""
    spread = np.sqrt(whole.var(axis=-1) + eps)
    spread = spread.reshape(-1, *[1] * (parts.ndim - 1))
    return (parts - parts.mean(axis=-1, keepdims=True)) / spread * gain


def diagonal(rows: np.ndarray) -> np.ndarray:
    """Each row as the vector of its own token, `[i, j, feature]`."""
    return np.eye(len(rows))[:, :, None] * rows[:, None, :]
