"""Kinds of tokens: special tokens and punctuation often get weight whatever the text says."""

import unicodedata
from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.tokens import Tokens

TOKEN_KINDS = ("first special", "other special", "punctuation", "content")  # [CLS]; [SEP], …


def kinds_of(tokens: Tokens) -> list[int]:
    """The kind of each token, an index into TOKEN_KINDS."""
    labels = tokens.labels()
    found = []
    for place, special in enumerate(tokens.special):
        if special:
            found.append(0 if place == 0 else 1)
        else:
            found.append(2 if _is_punctuation(labels[place]) else 3)
    return found


def mark_kinds(tokens: Sequence[Tokens], start: int, stop: int) -> Tensor:
    """The kinds of the tokens from start to stop, one-hot, `[batch, token, kind]`."""
    kinds = torch.tensor([kinds_of(each)[start:stop] for each in tokens])
    return torch.nn.functional.one_hot(kinds, len(TOKEN_KINDS)).double()


def _is_punctuation(text: str) -> bool:
    return bool(text) and all(unicodedata.category(letter)[0] == "P" for letter in text)
