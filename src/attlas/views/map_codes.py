"""Maps as a page carries them: one code for each weight, packed for each site.

A code is a byte by default. It holds the square root of the weight's share of the largest of its
head, so that weights far below a strong one are still told apart, and zero is exactly zero.
"""

import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UnknownNameError, UsageError

BYTES, HALVES = "8-bit", "float16"
PRECISIONS = (BYTES, HALVES)
_TOPS = {"uint8": 255, "int8": 127}
MANY = 2**18  # weights, from which on threads are worth their start
RUNS = 1 / 20  # the share of equal neighbours from which on it pays to look for runs
_OFFSETS = {"previous": -1, "same": 0, "next": 1}

Weights = NDArray[np.floating[Any]]


class PackedCodes(str):
    """Codes as base64: text in which no page has anything to escape."""

    __slots__ = ()


def site_sections(
    given: Sequence[tuple[str, tuple[str, int], tuple[Sequence[int], Sequence[int]], Weights]],
    precision: str = BYTES,
) -> list[dict[str, Any]]:
    """Sites of a payload, each given as `site_section` takes it.

    Large ones are packed side by side: packing leaves the interpreter free.
    """
    sections = [_section(*each, precision) for each in given]
    codes = [each for _, each in sections]
    threads = min(len(given), os.cpu_count() or 1)
    if threads < 2 or sum(each.size for each in codes) < MANY:
        packed = list(map(_packed, codes))
    else:
        with ThreadPoolExecutor(threads) as pool:
            packed = list(pool.map(_packed, codes))
    return [{**one, "data": data} for (one, _), data in zip(sections, packed, strict=True)]


def site_section(
    name: str,
    place: tuple[str, int],
    axes: tuple[Sequence[int], Sequence[int]],
    weights: Weights,
    precision: str = BYTES,
) -> dict[str, Any]:
    """One site of a payload: `place` is its kind and layer, `axes` are its queries and keys."""
    section, codes = _section(name, place, axes, weights, precision)
    return {**section, "data": _packed(codes)}


def _section(
    name: str,
    place: tuple[str, int],
    axes: tuple[Sequence[int], Sequence[int]],
    weights: Weights,
    precision: str,
) -> tuple[dict[str, Any], NDArray[Any]]:
    """A site without its data, and the codes that are to be packed."""
    if precision not in PRECISIONS:
        raise UnknownNameError("precision", precision, PRECISIONS)
    lowest = weights.min(axis=(1, 2), initial=0.0)
    limits = np.maximum(weights.max(axis=(1, 2), initial=0.0), -lowest).astype(np.float64)
    if not np.isfinite(limits).all():
        raise UsageError(f"the map at {name} has values that are not finite")
    signed = bool(lowest.min(initial=0.0) < 0)
    codes = _coded(weights, limits, signed, precision)
    section = {
        "name": name,
        "kind": place[0],
        "layer": place[1],
        "queries": list(axes[0]),
        "keys": list(axes[1]),
        "shape": list(weights.shape),
        "limits": limits.tolist(),
        "codes": codes.dtype.name,
        "patterns": {} if signed else _patterns(weights, axes),
    }
    return section, codes


def read_site(site: Mapping[str, Any]) -> Weights:
    """The weights `[head, query, key]` that a page reads from a site of a payload."""
    packed = zlib.decompress(b64decode(site["data"]))
    codes: Weights = np.frombuffer(packed, site["codes"]).reshape(site["shape"]).astype(np.float64)
    top = _TOPS.get(site["codes"])
    shares: Weights = codes if top is None else np.sign(codes) * (codes / top) ** 2
    limits: Weights = np.array(site["limits"])[:, None, None]
    return shares * limits


def _coded(weights: Weights, limits: Weights, signed: bool, precision: str) -> NDArray[Any]:
    wide = np.float64 if weights.dtype == np.float64 else np.float32
    scale: Weights = np.where(limits > 0, limits, 1.0)[:, None, None].astype(wide)
    shares: NDArray[Any] = weights / scale
    if precision == HALVES:
        return shares.astype("<f2")
    kind = "int8" if signed else "uint8"
    roots: NDArray[Any] = np.sqrt(np.abs(shares) if signed else shares)
    roots *= _TOPS[kind]
    np.rint(np.copysign(roots, shares) if signed else roots, out=roots)
    return roots.astype(kind)


def _packed(codes: NDArray[Any]) -> PackedCodes:
    # Only runs and frequencies: as small as a search for repeats on attention, and much faster.
    # Where almost no neighbours are equal, the look for runs is spared too.
    flat = codes.ravel()
    runs = np.count_nonzero(flat[1:] == flat[:-1]) > RUNS * flat.size
    strategy = zlib.Z_RLE if runs else zlib.Z_HUFFMAN_ONLY
    packer = zlib.compressobj(level=1, memLevel=9, strategy=strategy)
    return PackedCodes(b64encode(packer.compress(codes.tobytes()) + packer.flush()), "ascii")


def _patterns(
    weights: Weights, axes: tuple[Sequence[int], Sequence[int]]
) -> dict[str, list[float]]:
    """How much each head looks at a neighbour, itself, the first token, or all about.

    Each is a share of the head's attention, a mean over its queries; `broad` is the entropy of a
    row, a share of the largest that its visible keys allow.
    """
    queries = weights.shape[1]
    if not weights.size:
        return {}
    # In double precision: a map may hold numbers whose sum single precision does not.
    found = {"first": weights[:, :, 0].mean(axis=1, dtype=np.float64), "broad": _breadth(weights)}
    if list(axes[0]) == list(axes[1]):
        for name, step in _OFFSETS.items():
            found[name] = np.trace(weights, step, 1, 2, np.float64) / max(1, queries - abs(step))
    return {name: np.round(values, 4).tolist() for name, values in found.items()}


def _breadth(weights: Weights) -> Weights:
    heads, queries, keys = weights.shape
    causal = queries == keys > 1 and not weights[:, 0, 1:].any()
    visible = np.arange(1, queries + 1) if causal else np.full(queries, keys)
    most = float(np.log(visible).sum())
    if not most:
        return np.zeros(heads)
    least = np.finfo(weights.dtype).tiny  # a weight of zero adds zero, not the logarithm of zero
    rows: Weights = -np.einsum("hqk,hqk->hq", weights, np.log(np.maximum(weights, least)))
    shares: Weights = rows.sum(axis=1, dtype=np.float64) / most
    return shares.clip(0.0, 1.0)
