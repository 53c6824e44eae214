"""IdentifiableEncoderLayer: an encoder layer whose weights are determined by its output.

Bhardwaj et al., "More Identifiable yet Equally Performant Transformers for Text Classification",
ACL 2021, arXiv:2106.01269. The values of each head are as wide as the model, and heads are added
where others are joined: for texts of up to that many tokens no other weights give the same output.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from attlas.errors import UsageError


class WideAttention(nn.Module):
    """Attention with values as wide as the model, whose heads are added."""

    def __init__(self, width: int, heads: int, key_width: int, dropout: float) -> None:
        super().__init__()
        self.num_heads, self.dropout = heads, dropout
        self.batch_first = True
        self.query, self.key = (nn.Linear(width, heads * key_width) for _ in range(2))
        self.value = nn.Linear(width, heads * width)

    def forward(self, hidden_states: Tensor, hidden: Tensor | None = None) -> Tensor:
        """What the heads mix, added; `hidden` `[batch, 1, query, key]` is true where closed."""
        query, key, value = (
            part(hidden_states).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        return added_heads(query, key, value, hidden, self.dropout if self.training else 0.0)


def added_heads(
    query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None, dropped: float = 0.0
) -> Tensor:
    """What heads `[batch, head, token, width]` mix, added; `hidden` marks keys not seen."""
    scores = torch.matmul(query, key.transpose(-1, -2)) / key.shape[-1] ** 0.5
    if hidden is not None:
        scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
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
        activation: Callable[[Tensor], Tensor] = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        *,
        key_width: int | None = None,
    ) -> None:
        super().__init__()
        if key_width is None and d_model % nhead:
            raise UsageError(f"{nhead} heads do not divide a width of {d_model}: give key_width")
        self.self_attn = WideAttention(d_model, nhead, key_width or d_model // nhead, dropout)
        self.self_attn.batch_first = batch_first  # the stock encoder looks here
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        self.norm1, self.norm2 = (nn.LayerNorm(d_model, eps=layer_norm_eps) for _ in range(2))
        self.dropout1, self.dropout2, self.dropout3 = (nn.Dropout(dropout) for _ in range(3))
        self.activation, self.batch_first, self.norm_first = activation, batch_first, norm_first

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The layer's output; masks are true, or below zero, where a key is not seen."""
        states: Tensor = src if self.batch_first else src.transpose(0, 1)
        hidden = closed(src_mask, src_key_padding_mask, is_causal, states)
        if self.norm_first:
            states = states + self.dropout1(self.self_attn(self.norm1(states), hidden))
            states = states + self._feed(self.norm2(states))
        else:
            states = self.norm1(states + self.dropout1(self.self_attn(states, hidden)))
            states = self.norm2(states + self._feed(states))
        return states if self.batch_first else states.transpose(0, 1)

    def _feed(self, states: Tensor) -> Tensor:
        inner = self.dropout2(self.activation(self.linear1(states)))
        fed: Tensor = self.dropout3(self.linear2(inner))
        return fed


def closed(
    mask: Tensor | None, padding: Tensor | None, is_causal: bool, states: Tensor
) -> Tensor | None:
    """Which keys each query does not see, `[batch or 1, 1, query, key]`; None if it sees all."""
    found = []
    if is_causal and mask is None:
        length = states.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=states.device).triu(1)
    if mask is not None:
        own = mask if mask.dtype == torch.bool else mask < 0
        found.append(own[None, None])
    if padding is not None:
        own = padding if padding.dtype == torch.bool else padding < 0
        found.append(own[:, None, None])
    return None if not found else found[0] if len(found) == 1 else found[0] | found[1]
