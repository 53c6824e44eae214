"""Attention over states: one softmax over the tokens, `[batch, head, query, token]`.

Each class computes the scores of the tokens in its own way. Tokens that are not visible get none of
the weight; where nothing is visible, all weights are zero.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from attlas.models.recurrent.configuration import RecurrentConfig


class PoolingAttention(nn.Module):
    """Weighs states and adds them up; the parts differ in how they score a state."""

    num_heads: ClassVar[int] = 1
    pools_tokens = True  # into one vector: its query is no token

    def forward(self, states: Tensor, visible: Tensor, question: Tensor | None = None) -> Tensor:
        """The weighted sum of the states, `[batch, query, feature]`.

        `visible` is `[batch, query, token]`, `question` a vector `[batch, feature]`.
        """
        scores = self.scores(states, question)[:, None].expand(visible.shape)
        weights = masked_softmax(scores[:, None], visible[:, None])
        return torch.matmul(weights, states[:, None]).squeeze(1)

    def scores(self, states: Tensor, question: Tensor | None) -> Tensor:
        """The score of each state, `[batch, token]`."""
        raise NotImplementedError


class AdditiveAttention(PoolingAttention):
    """v · tanh(W h + b), and W_q q within the tanh if there is a question (Bahdanau)."""

    def __init__(self, width: int, inner: int, has_question: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(width, inner)
        self.of_question = nn.Linear(width, inner) if has_question else None
        self.outer = nn.Linear(inner, 1, bias=False)

    def scores(self, states: Tensor, question: Tensor | None) -> Tensor:
        """The score of each state, `[batch, token]`."""
        inner = self.inner(states)
        if self.of_question is not None and question is not None:
            inner = inner + self.of_question(question)[:, None]
        found: Tensor = self.outer(inner.tanh()).squeeze(-1)
        return found


class ScaledDotAttention(PoolingAttention):
    """w · h / sqrt(width) with a learned w, or q · h / sqrt(width) if there is a question."""

    def __init__(self, width: int, has_question: bool) -> None:
        super().__init__()
        self.query = None if has_question else nn.Linear(width, 1, bias=False)

    def scores(self, states: Tensor, question: Tensor | None) -> Tensor:
        """The score of each state, `[batch, token]`."""
        if self.query is not None:
            found = self.query(states)
        else:
            assert question is not None
            found = torch.matmul(states, question[..., None])
        scaled: Tensor = found.squeeze(-1) / states.shape[-1] ** 0.5
        return scaled


class UniformAttention(PoolingAttention):
    """The same weight for every visible token."""

    def scores(self, states: Tensor, question: Tensor | None) -> Tensor:
        """Zeros, `[batch, token]`."""
        return states.new_zeros(states.shape[:-1])


class LuongAttention(nn.Module):
    """s · W h weighs the source ("general")."""

    num_heads: ClassVar[int] = 1

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_source = nn.Linear(width, width, bias=False)

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor, visible: Tensor
    ) -> Tensor:
        """The weighted sum of the source for each state, `[batch, token, feature]`."""
        keys = self.of_source(encoder_hidden_states)
        scores = torch.matmul(hidden_states, keys.transpose(1, 2))[:, None]
        weights = masked_softmax(scores, visible[:, None, None].expand_as(scores))
        return torch.matmul(weights, encoder_hidden_states[:, None])[:, 0]


class PoolingLayer(nn.Module):
    """The layer of a pooling attention: the attention alone, nothing is added to what it pools."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.attention = build_attention(config)

    def forward(
        self, hidden_states: Tensor, visible: Tensor, question: Tensor | None = None
    ) -> Tensor:
        """The weighted sum of the states, `[batch, query, feature]`."""
        pooled: Tensor = self.attention(hidden_states, visible, question)
        return pooled


def build_attention(config: RecurrentConfig) -> PoolingAttention:
    """The attention that a configuration names."""
    has_question = config.reads != "text"
    if config.attention == "additive":
        return AdditiveAttention(config.hidden_size, config.attention_size, has_question)
    if config.attention == "scaled_dot":
        return ScaledDotAttention(config.hidden_size, has_question)
    return UniformAttention()


def masked_softmax(scores: Tensor, visible: Tensor) -> Tensor:
    """The softmax over the visible tokens; zero elsewhere, and everywhere if there is none."""
    low = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~visible, low), dim=-1)
    return torch.where(visible.any(dim=-1, keepdim=True), weights, torch.zeros_like(weights))
