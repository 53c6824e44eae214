"""Decoders that write: a recurrent network that attends to the states of the source.

Bahdanau et al. attend before each step, so every state depends on the attention of the last one;
Luong et al. attend after the network has run.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from attlas.models.recurrent.attentions import LuongAttention, masked_softmax


class BahdanauDecoder(nn.Module):
    """In each step, v · tanh(W s + U h) weighs the source, and what it finds enters the network.

    It owns all softmaxes of a text, one for each step: a row of its map each.
    """

    num_heads: ClassVar[int] = 1

    def __init__(self, vector_size: int, width: int, inner: int) -> None:
        super().__init__()
        self.of_state = nn.Linear(width, inner, bias=False)
        self.of_source = nn.Linear(width, inner)
        self.outer = nn.Linear(inner, 1, bias=False)
        self.cell = nn.GRUCell(vector_size + width, width)
        self.joined = nn.Linear(vector_size + 2 * width, width)

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor, visible: Tensor, start: Tensor
    ) -> Tensor:
        """The states that the output is read from, `[batch, token, feature]`.

        `hidden_states` are the vectors of what was written; `visible` is `[batch, source]`.
        """
        keys, state, found = self.of_source(encoder_hidden_states), start, []
        for vector in hidden_states.unbind(dim=1):
            scores = self.outer((self.of_state(state)[:, None] + keys).tanh()).squeeze(-1)
            weights = masked_softmax(scores[:, None, None], visible[:, None, None])
            context = torch.matmul(weights, encoder_hidden_states[:, None])[:, 0, 0]
            state = self.cell(torch.cat([vector, context], dim=-1), state)
            found.append(torch.cat([vector, state, context], dim=-1))
        output: Tensor = self.joined(torch.stack(found, dim=1)).tanh()
        return output


class BahdanauLayer(nn.Module):
    """The layer of a decoder that attends before each step."""

    def __init__(self, vector_size: int, width: int) -> None:
        super().__init__()
        self.attention = BahdanauDecoder(vector_size, width, max(1, width // 2))

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor, visible: Tensor, start: Tensor
    ) -> Tensor:
        """The states that the output is read from, `[batch, token, feature]`."""
        output: Tensor = self.attention(hidden_states, encoder_hidden_states, visible, start)
        return output


class LuongLayer(nn.Module):
    """The layer of a decoder that attends after the network has run."""

    def __init__(self, vector_size: int, width: int) -> None:
        super().__init__()
        self.network = nn.GRU(vector_size, width, batch_first=True)
        self.attention = LuongAttention(width)
        self.joined = nn.Linear(2 * width, width)

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor, visible: Tensor, start: Tensor
    ) -> Tensor:
        """The states that the output is read from, `[batch, token, feature]`."""
        # cuDNN lets gradients through a network in training mode alone; there is no dropout in it.
        mode, self.network.training = self.network.training, True
        try:
            states, _ = self.network(hidden_states, start[None].contiguous())
        finally:
            self.network.training = mode
        context = self.attention(states, encoder_hidden_states, visible)
        output: Tensor = self.joined(torch.cat([context, states], dim=-1)).tanh()
        return output
