"""SentenceEncoder: words are pooled into sentences, all at the places of the sentences' ends."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attlas.models.recurrent.attentions import PoolingLayer
from attlas.models.recurrent.configuration import RecurrentConfig
from attlas.models.recurrent.encoders import build_encoder
from attlas.models.recurrent.places import gathered, scattered


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
