"""Encoders: they turn the vectors of tokens into states, `[batch, token, feature]`."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attlas.models.recurrent.configuration import RecurrentConfig


class RecurrentEncoder(nn.Module):
    """A recurrent network that reads in both directions: an LSTM or a GRU."""

    def __init__(self, network: type[nn.LSTM | nn.GRU], vector_size: int, hidden_size: int) -> None:
        super().__init__()
        self.network = network(vector_size, hidden_size // 2, batch_first=True, bidirectional=True)
        if network is nn.GRU:  # as Serrano and Smith begin
            for name, weight in self.network.named_parameters():
                if name.startswith("weight_ih"):
                    nn.init.xavier_uniform_(weight)
                elif name.startswith("weight_hh"):
                    nn.init.orthogonal_(weight)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the tokens, and the last states of both directions side by side."""
        is_full = int(lengths.min()) == vectors.shape[1]
        given: Any = vectors
        if not is_full:
            given = pack_padded_sequence(
                vectors, lengths.clamp_min(1).cpu(), batch_first=True, enforce_sorted=False
            )
        # cuDNN lets gradients through a network in training mode alone; there is no dropout in it.
        mode, self.network.training = self.network.training, True
        try:
            states, last = self.network(given)
        finally:
            self.network.training = mode
        if not is_full:
            states, _ = pad_packed_sequence(states, batch_first=True, total_length=vectors.shape[1])
        last = last[0] if isinstance(last, tuple) else last
        return states, torch.cat([last[0], last[1]], dim=-1)


class ConvolutionEncoder(nn.Module):
    """Convolutions of several widths side by side, each of which keeps the length."""

    def __init__(self, vector_size: int, hidden_size: int, kernels: list[int]) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(vector_size, hidden_size // len(kernels), kernel, padding=kernel // 2)
            for kernel in kernels
        )

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the tokens, and the largest value of each feature among them."""
        real = within(lengths, vectors.shape[1])[..., None]
        columns = (vectors * real).transpose(1, 2)
        found = [convolve(columns).relu() for convolve in self.convolutions]
        states = torch.cat(found, dim=1).transpose(1, 2) * real
        return states, states.amax(dim=1)


class AverageEncoder(nn.Module):
    """Each token by itself: a linear map and tanh. No token knows of another."""

    def __init__(self, vector_size: int, hidden_size: int) -> None:
        super().__init__()
        self.projection = nn.Linear(vector_size, hidden_size)

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the tokens, and their mean."""
        states = self.projection(vectors).tanh() * within(lengths, vectors.shape[1])[..., None]
        return states, states.sum(dim=1) / lengths.clamp_min(1)[:, None]


class NoEncoder(nn.Module):
    """The vectors of the tokens as they are."""

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The vectors, and their mean."""
        states = vectors * within(lengths, vectors.shape[1])[..., None]
        return states, states.sum(dim=1) / lengths.clamp_min(1)[:, None]


def build_encoder(config: RecurrentConfig, vector_size: int) -> nn.Module:
    """The encoder that a configuration names."""
    if config.encoder in ("bilstm", "bigru"):
        network = nn.LSTM if config.encoder == "bilstm" else nn.GRU
        return RecurrentEncoder(network, vector_size, config.hidden_size)
    if config.encoder == "cnn":
        return ConvolutionEncoder(vector_size, config.hidden_size, config.kernels)
    if config.encoder == "average":
        return AverageEncoder(vector_size, config.hidden_size)
    return NoEncoder()


def within(lengths: Tensor, most: int) -> Tensor:
    """Which places hold a token, `[batch, token]`."""
    return torch.arange(most, device=lengths.device)[None, :] < lengths[:, None]
