"""Where the weights of block-sparse attention belong in a map of all queries and keys.

These families attend within windows or blocks, and take one softmax or several over them. Each
band here follows from the family's own definition of its windows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.facts.band_layout import NOWHERE, Band, Bands, square


def _sliding_window(module: Any, given: Mapping[str, Any]) -> Bands:
    """Longformer: a window around each token; global tokens see and are seen by all.

    The model fills its input up to whole windows; the map covers the tokens.
    """
    masked, is_global = given["is_index_masked"], given["is_index_global_attn"]
    batch, length = masked.shape
    places = torch.arange(length, device=masked.device)
    side = module.one_sided_attn_window_size
    window = (places[:, None] + torch.arange(-side, side + 1, device=masked.device))[None, None]
    if not given["is_global_attn"]:
        local = [Band("bqhk", places[None], window)]
    else:
        counts = is_global.sum(dim=1, keepdim=True)
        most = int(counts.max())
        first = (~is_global).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
        chosen = first.where(torch.arange(most, device=masked.device) < counts, NOWHERE)
        extra = chosen[:, None, None].expand(batch, 1, length, most)
        keys = torch.cat([extra, window.expand(batch, -1, -1, -1)], dim=-1)
        own = places.expand(batch, length).masked_fill(is_global, NOWHERE)
        local = [
            Band("bqhk", own, keys),
            Band("xqk", chosen, places[None, None, None].expand(batch, 1, most, length)),
        ]
    return square(local, _count_tokens(~masked), module.num_heads)


def _neighbouring_blocks(module: Any, given: Mapping[str, Any]) -> Bands:
    """LongT5: each block sees itself and its two neighbours, and perhaps summaries of all blocks.

    A summary is no token: what a row gives to summaries is left out of the map, as a sink is.
    """
    states, size = given["hidden_states"], module.block_len
    tokens, device = states.shape[1], states.device
    blocks = -(-tokens // size)
    rows = torch.arange(blocks * size, device=device)
    starts = (rows // size - 1) * size
    keys = starts[:, None] + torch.arange(3 * size, device=device)
    summaries = tokens // module.global_block_size if hasattr(module, "global_block_size") else 0
    keys = nn.functional.pad(keys, (0, summaries), value=NOWHERE)
    return square([Band("bnhqk", rows[None], keys[None, None])], tokens, module.n_heads)


def _blocks_with_globals(module: Any, given: Mapping[str, Any]) -> Bands:
    """Pegasus-X: each block sees itself and global vectors, which see all tokens.

    The global vectors are no tokens: their rows and columns are left out of the map. Every other
    layer begins half a block before the text.
    """
    seen, size = given["attention_mask"] >= 0, module.block_size
    extra, device = given["global_hidden_states"].shape[1], seen.device
    length = seen.shape[1]
    outside = torch.full((1, extra), NOWHERE, device=device)
    columns = torch.full((1, 1, extra, extra + length), NOWHERE, device=device)
    places, first = torch.arange(length, device=device), int(seen.any(dim=0).nonzero().min())
    keys = (places // size * size - first)[:, None] + torch.arange(size, device=device)
    keys, rows = nn.functional.pad(keys, (extra, 0), value=NOWHERE), places - first
    bands = [Band("bhqk", outside, columns), Band("bhnqk", rows[None], keys[None, None])]
    return square(bands, _count_tokens(seen[:, first:]), module.num_heads)


def _global_and_random_blocks(module: Any, given: Mapping[str, Any]) -> Bands:
    """BigBird: each block sees itself, its neighbours, the first, the last and random blocks.

    The first and the last see all. Outside training every random block is the first, which so
    occurs several times. A text that is too short for this gets full attention.
    """
    states, sparse = given["hidden_states"], module.self
    length, device = states.shape[1], states.device
    places = torch.arange(length, device=device)
    if module.attention_type == "original_full":
        everywhere = Band("bhqk", places[None], places[None, None, None])
        return square([everywhere], length, sparse.num_attention_heads)
    size, drawn = sparse.block_size, [0] * sparse.num_random_blocks
    last = length // size - 1
    middle = [[0, own - 1, own, own + 1, *drawn, last] for own in range(2, last - 1)]

    def band(axes: str, first: int, seen: Sequence[Sequence[int]]) -> Band:
        blocks = torch.tensor(seen, device=device).repeat_interleave(size, dim=0)
        keys = (blocks[..., None] * size + torch.arange(size, device=device)).flatten(1)
        return Band(axes, places[None, first * size :][:, : len(keys)], keys[None, None])

    every = list(range(last + 1))
    bands = [
        band("bhqk", 0, [every]),
        band("bhqk", 1, [[0, 1, 2, last, *drawn]]),
        band("bhnqk", 2, middle),
        band("bhqk", last - 1, [[0, last - 2, last - 1, last, *drawn]]),
        band("bhqk", last, [every]),
    ]
    return square(bands, _count_tokens(given["to_mask"][:, 0, 0] > 0), sparse.num_attention_heads)


def _shifted_windows(module: Any, given: Mapping[str, Any]) -> Bands:
    """Swin: windows of a grid, filled up to whole ones and in every other layer shifted.

    A window that is larger than the grid is the grid. What a row gives to the fillers is left out.
    """
    rows, columns = given["input_dimensions"]
    size, shift = module.window_size, module.shift_size
    clamps = hasattr(module, "set_shift_and_window_size") and not given.get("always_partition")
    if clamps and min(rows, columns) <= size:
        size, shift = min(rows, columns), 0
    places = torch.arange(rows * columns, device=given["hidden_states"].device).view(rows, columns)
    filled = nn.functional.pad(places, (0, -columns % size, 0, -rows % size), value=NOWHERE)
    shifted = filled.roll((-shift, -shift), dims=(0, 1))
    windows = shifted.unfold(0, size, size).unfold(1, size, size).flatten(2).flatten(0, 1)
    keys = windows.repeat_interleave(size**2, dim=0)
    return square([Band("yhqk", windows.view(1, -1), keys[None, None])], rows * columns, 0)


def _mask_units(module: Any, given: Mapping[str, Any]) -> Bands:
    """Hiera: units whose tokens are spread through the sequence, and queries pooled within each."""
    states = given["hidden_states"]
    tokens, stride, device = states.shape[1], module.query_stride, states.device
    units = tokens // (stride * module.window_size) if module.use_mask_unit_attn else 1
    keys = torch.arange(tokens, device=device).view(-1, units).T  # `[unit, key]`
    rows = torch.arange(tokens // stride, device=device).view(-1, units).T
    seen = keys.repeat_interleave(rows.shape[1], dim=0)
    band = Band("bhnqk", rows.reshape(1, -1), seen[None, None])
    return Bands([band], tokens // stride, tokens, module.num_heads)


def _streams_of_next_tokens(module: Any, given: Mapping[str, Any]) -> Bands:
    """ProphetNet: the tokens see tokens; each further stream sees the tokens and itself.

    The streams, one for each of the next tokens, follow the tokens as further positions.
    """
    kept, states = given["past_key_values"], given["hidden_states"]
    _refuse_kept_keys(module, kept is not None and kept.get_seq_length(module.layer_idx) > 0)
    length, device = states.shape[1] // (1 + module.ngram), states.device
    places = torch.arange(length, device=device)
    rows = torch.arange(length, states.shape[1], device=device)
    keys = torch.cat([places.expand(len(rows), -1), (rows // length * length)[:, None] + places], 1)
    each = [
        Band("bhqk", places[None], places[None, None, None]),
        Band("bnhqk", rows[None], keys[None, None]),
    ]
    return square(each, states.shape[1], module.num_attn_heads)


def _chunks(module: Any, given: Mapping[str, Any]) -> Bands:
    """Reformer's local attention: each chunk sees itself and its neighbours, in a circle.

    A text that fits into one chunk gets full attention. The model fills its input up to whole
    chunks; the map covers the tokens.
    """
    states, mask, size = given["hidden_states"], given["attention_mask"], module.chunk_length
    kept = given["past_buckets_states"]
    _refuse_kept_keys(module, kept is not None and len(kept) > module.layer_idx)
    length, device = states.shape[1], states.device
    tokens = length if mask is None else _count_tokens(mask > 0)
    places = torch.arange(length, device=device)
    if length <= size:
        band = Band("bhqk", places[None], places[None, None, None])
    else:
        around = torch.arange(-module.num_chunks_before, module.num_chunks_after + 1, device=device)
        seen = (places[:, None] // size + around) % (length // size)
        keys = (seen[..., None] * size + torch.arange(size, device=device)).flatten(1)
        band = Band("bhnqk", places[None], keys[None, None])
    return square([band], tokens, module.num_attention_heads)


def _steps(module: Any, given: Mapping[str, Any]) -> Bands:
    """A decoder that attends once for each token that it writes: a row each."""
    source, device = given["encoder_hidden_states"].shape[1], given["encoder_hidden_states"].device
    keys = torch.arange(source, device=device)[None, None, None]
    written = given["hidden_states"].shape[1]
    rows = torch.arange(written, device=device)[None]
    bands = [Band("bhqk", rows[:, step : step + 1], keys) for step in range(written)]
    return Bands(bands, written, source, module.num_heads)


def has_bands(module: nn.Module) -> bool:
    """Whether a module owns block-sparse attention; BigBird's may be switched to full attention."""
    config = getattr(module, "config", None)
    kind = getattr(config, "attention_type", "block_sparse")
    is_decoder = type(module).__name__ == "BigBirdAttention" and getattr(
        config, "is_decoder", False
    )
    return type(module).__name__ in BANDS and kind == "block_sparse" and not is_decoder


def _refuse_kept_keys(module: nn.Module, has_kept: bool) -> None:
    if has_kept:
        raise UnsupportedModelError(
            f"{type(module).__name__} is opened on whole texts only: run it without kept keys "
            "(use_cache=False)"
        )


def _count_tokens(seen: Tensor) -> int:
    """The length of the longest text of a batch, by the positions that may be seen."""
    return int(seen.any(dim=0).nonzero().max()) + 1


BANDS: dict[str, Callable[[Any, Mapping[str, Any]], Bands]] = {
    "LongformerSelfAttention": _sliding_window,
    "LEDEncoderSelfAttention": _sliding_window,
    "LongT5LocalAttention": _neighbouring_blocks,
    "LongT5TransientGlobalAttention": _neighbouring_blocks,
    "PegasusXGlobalLocalAttention": _blocks_with_globals,
    "BigBirdAttention": _global_and_random_blocks,
    "BigBirdPegasusEncoderAttention": _global_and_random_blocks,
    "ProphetNetNgramSelfAttention": _streams_of_next_tokens,
    "LocalSelfAttention": _chunks,
    "SwinLayer": _shifted_windows,
    "Swinv2Layer": _shifted_windows,
    "DonutSwinLayer": _shifted_windows,
    "HieraMaskUnitAttention": _mask_units,
    "BahdanauDecoder": _steps,
}
