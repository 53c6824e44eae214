"""IdentifiableEncoderLayer: an encoder layer whose weights are determined by its output.

Bhardwaj et al., "More Identifiable yet Equally Performant Transformers for Text Classification",
ACL 2021, arXiv:2106.01269. The values of each head are as wide as the model, and heads are added
where others are joined: for texts of up to that many tokens no other weights give the same output.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from attlas.errors import UnknownNameError, UsageError

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
}


class WideAttention(nn.Module):
    """Attention with values as wide as the model, whose heads are added."""

    def __init__(self, width: int, heads: int, key_width: int, dropout: float, **how: Any) -> None:
        super().__init__()
        self.num_heads, self.dropout = heads, dropout
        self.batch_first = True
        self.query, self.key = (nn.Linear(width, heads * key_width, **how) for _ in range(2))
        self.value = nn.Linear(width, heads * width, **how)

    def forward(self, hidden_states: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the heads mix, added; `mask` `[batch, head, query, key]` is added to the scores."""
        sizes = [self.num_heads, -1]
        query = self.query(hidden_states).unflatten(-1, sizes).transpose(1, 2)
        key = self.key(hidden_states).unflatten(-1, sizes).transpose(1, 2)
        value = self.value(hidden_states).unflatten(-1, sizes).transpose(1, 2)
        return added_heads(query, key, value, mask, self.dropout if self.training else 0.0)


def added_heads(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropped: float = 0.0
) -> Tensor:
    """What heads `[batch, head, token, width]` mix, added; a row without keys is uniform."""
    scores = torch.matmul(query, key.transpose(-1, -2)) / key.shape[-1] ** 0.5
    if mask is not None:
        scores = (scores + mask).clamp_min(torch.finfo(scores.dtype).min)
    weights = functional.dropout(scores.softmax(dim=-1), dropped)
    return torch.matmul(weights, value).sum(dim=1)


class IdentifiableEncoderLayer(nn.Module):
    """A layer to use where `torch.nn.TransformerEncoderLayer` is: with the same arguments.

    `key_width` is that of the keys of a head, by default as there: the width by the heads.
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        key_width: int | None = None,
    ) -> None:
        super().__init__()
        how: Any = {"bias": bias, "device": device, "dtype": dtype}
        narrow = _key_width(d_model, nhead, key_width)
        self.self_attn = WideAttention(d_model, nhead, narrow, dropout, **how)
        self.self_attn.batch_first = batch_first  # the stock encoder looks here
        self.linear1 = nn.Linear(d_model, dim_feedforward, **how)
        self.linear2 = nn.Linear(dim_feedforward, d_model, **how)
        self.norm1, self.norm2 = (nn.LayerNorm(d_model, layer_norm_eps, **how) for _ in range(2))
        self.dropout1, self.dropout2, self.dropout3 = (nn.Dropout(dropout) for _ in range(3))
        self.activation = _activation(activation)
        self.batch_first, self.norm_first = batch_first, norm_first

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The layer's output; masks are true where a key is not seen, or are added to the scores.

        `src` is `[token, batch, feature]`, or with `batch_first` `[batch, token, feature]`; one
        text alone is `[token, feature]`.
        """
        batch = 0 if self.batch_first else 1
        states = src.unsqueeze(batch) if src.dim() == 2 else src
        states = states if self.batch_first else states.transpose(0, 1)
        mask = masks(src_mask, src_key_padding_mask, is_causal, states)
        if self.norm_first:
            states = states + self.dropout1(self.self_attn(self.norm1(states), mask))
            states = states + self._feed(self.norm2(states))
        else:
            states = self.norm1(states + self.dropout1(self.self_attn(states, mask)))
            states = self.norm2(states + self._feed(states))
        states = states if self.batch_first else states.transpose(0, 1)
        whole: Tensor = states.squeeze(batch) if src.dim() == 2 else states
        return whole

    def _feed(self, states: Tensor) -> Tensor:
        inner = self.dropout2(self.activation(self.linear1(states)))
        fed: Tensor = self.dropout3(self.linear2(inner))
        return fed


def _key_width(width: int, heads: int, given: int | None) -> int:
    if heads < 1 or (given is not None and given < 1):
        raise UsageError(f"heads and key_width are 1 or more, not {heads} and {given}")
    if given is None and width % heads:
        raise UsageError(f"{heads} heads do not divide a width of {width}: give key_width")
    return width // heads if given is None else given


def _activation(given: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ACTIVATIONS:
        raise UnknownNameError("activation", given, ACTIVATIONS)
    return ACTIVATIONS[given]


def masks(
    mask: Tensor | None, padding: Tensor | None, is_causal: bool, states: Tensor
) -> Tensor | None:
    """What is added to the scores, `[batch or 1, head or 1, query, key]`; None if all is seen."""
    length = states.shape[1]
    if is_causal and mask is None:
        mask = torch.ones(length, length, dtype=torch.bool, device=states.device).triu(1)
    whole = None
    if mask is not None:  # one for all, or one for each head of each text
        whole = added(mask, states).view(1 if mask.dim() == 2 else len(states), -1, length, length)
    if padding is not None:
        own = added(padding, states).view(len(states), 1, 1, length)
        whole = own if whole is None else whole + own
    return whole


def added(mask: Tensor, states: Tensor) -> Tensor:
    """A mask as numbers to add to scores."""
    if mask.dtype == torch.bool:
        return torch.zeros_like(mask, dtype=states.dtype).masked_fill(mask, float("-inf"))
    if not mask.is_floating_point():
        raise UsageError(f"a mask is of bool or floating numbers, not {mask.dtype}")
    return mask.to(states.dtype)
