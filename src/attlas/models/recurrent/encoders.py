"""Encoders: they turn the vectors of tokens into states, `[batch, token, feature]`.

That of a hierarchical model pools words into sentences, all at the places of the sentences' ends.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attlas.models.recurrent.attentions import PoolingLayer
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


class ForwardEncoder(nn.Module):
    """An LSTM that reads forward; with `orthogonal`, its states keep off their mean so far.

    Mohankumar et al. 2020: before a state is used, what it has in common with the mean of the
    states before it is taken away.
    """

    def __init__(self, vector_size: int, hidden_size: int, orthogonal: bool) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(vector_size, hidden_size)
        self.orthogonal = orthogonal

    def forward(self, vectors: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the tokens, and the last of each text."""
        real = within(lengths, vectors.shape[1])
        state = cells = vectors.new_zeros(len(vectors), self.cell.hidden_size)
        total = torch.zeros_like(state)
        found = []
        for place in range(vectors.shape[1]):
            fresh, carried = self.cell(vectors[:, place], (state, cells))
            if self.orthogonal:
                fresh = apart_from(fresh, total)
            here = real[:, place, None]
            state, cells = torch.where(here, fresh, state), torch.where(here, carried, cells)
            total = total + fresh * here
            found.append(fresh * here)
        return torch.stack(found, dim=1), state


def apart_from(state: Tensor, other: Tensor) -> Tensor:
    """A state without what it has in common with the direction of another; zero has none."""
    length = other.square().sum(dim=-1, keepdim=True)
    share = (state * other).sum(dim=-1, keepdim=True) / length.where(length > 0, 1.0)
    return state - share * other


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
    if config.encoder in ("lstm", "orthogonal_lstm"):
        return ForwardEncoder(vector_size, config.hidden_size, config.encoder != "lstm")
    if config.encoder == "cnn":
        return ConvolutionEncoder(vector_size, config.hidden_size, config.kernels)
    if config.encoder == "average":
        return AverageEncoder(vector_size, config.hidden_size)
    return NoEncoder()


def within(lengths: Tensor, most: int) -> Tensor:
    """Which places hold a token, `[batch, token]`."""
    return torch.arange(most, device=lengths.device)[None, :] < lengths[:, None]


@dataclass(frozen=True, eq=False)
class Sentences:
    """Which tokens end a sentence, and of each word its sentence and its place within it."""

    is_word: Tensor  # all `[batch, token]`
    ends: Tensor
    number: Tensor
    place: Tensor

    @classmethod
    def of(cls, input_ids: Tensor, is_word: Tensor, signs: list[int]) -> "Sentences":
        """A sentence ends with the last sign of a row of signs, and with the last word."""
        is_sign = is_word & torch.isin(input_ids, input_ids.new_tensor(signs))
        followed = torch.zeros_like(is_sign)
        followed[:, :-1] = is_sign[:, 1:]
        rank = is_word.long().cumsum(dim=1)
        is_last = is_word & (rank == rank[:, -1:])
        ends = (is_sign & ~followed) | is_last
        number = ends.long().cumsum(dim=1) - ends.long()
        first = torch.full_like(rank, rank.shape[1]).scatter_reduce(
            1, number, rank.where(is_word, rank.shape[1]), "amin"
        )
        return cls(is_word, ends, number, rank - first.gather(1, number))

    def same(self) -> Tensor:
        """Which words `[batch, end, word]` belong to the sentence that ends at each token."""
        same = self.number[:, :, None] == self.number[:, None, :]
        return same & self.ends[:, :, None] & self.is_word[:, None, :]


class SentenceEncoder(nn.Module):
    """Encodes the words of each sentence, pools them by attention, and encodes the sentences."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.signs = list(config.sentences)
        self.of_words = build_encoder(config, config.vector_size)
        self.word_pooling = nn.ModuleList([PoolingLayer(config)])
        of_words: Any = self.word_pooling[0]
        of_words.attention.pools_tokens = False  # its rows are the ends of sentences
        self.drop = nn.Dropout(config.sentence_dropout)
        self.of_sentences = build_encoder(config, config.hidden_size)

    def forward(self, vectors: Tensor, input_ids: Tensor, is_word: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the sentences at the places of their ends, and which tokens these are."""
        found = Sentences.of(input_ids, is_word, self.signs)
        words = self._words(vectors, found)
        pooled = self.word_pooling[0](words, found.same())
        front, places = gathered(pooled, found.ends)
        states, _ = self.of_sentences(self.drop(front), found.ends.sum(dim=1))
        return scattered(states, places, found.ends), found.ends

    def _words(self, vectors: Tensor, found: Sentences) -> Tensor:
        """The states of the words, each sentence encoded by itself."""
        batch, tokens = found.ends.shape
        count = max(1, int(found.number.where(found.is_word, 0).max()) + 1)
        longest = max(1, int(found.place.where(found.is_word, 0).max()) + 1)
        nowhere = count * longest
        slots = (found.number * longest + found.place).where(found.is_word, nowhere)
        origins = slots.new_full((batch, nowhere + 1), tokens)
        here = torch.arange(tokens, device=slots.device).expand(batch, -1)
        origins = origins.scatter(1, slots, here)[:, :-1]
        padded = nn.functional.pad(vectors, (0, 0, 0, 1))
        rows = padded.gather(1, origins[..., None].expand(-1, -1, vectors.shape[-1]))
        lengths = (origins < tokens).view(batch * count, longest).sum(dim=1)
        states, _ = self.of_words(rows.reshape(batch * count, longest, -1), lengths)
        laid = nn.functional.pad(states.reshape(batch, nowhere, -1), (0, 0, 0, 1))
        back: Tensor = laid.gather(1, slots[..., None].expand(-1, -1, laid.shape[-1]))
        return back


def last_place(mask: Tensor) -> Tensor:
    """How many tokens there are up to the last marked one, `[batch]`."""
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return (mask * places).amax(dim=1)


def gathered(vectors: Tensor, own: Tensor) -> tuple[Tensor, Tensor]:
    """The vectors of the marked places moved to the front, and where each of them came from."""
    most = max(1, int(own.sum(dim=1).max()))
    places = (~own).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
    return vectors.gather(1, places[..., None].expand(-1, -1, vectors.shape[-1])), places


def scattered(states: Tensor, places: Tensor, own: Tensor) -> Tensor:
    """States put back at the places of their tokens; zero at all other places."""
    blank = states.new_zeros(*own.shape, states.shape[-1])
    back = blank.scatter(1, places[..., None].expand_as(states), states)
    return back * own[..., None]
