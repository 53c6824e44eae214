"""Maps as a page carries them: one code for each weight, packed for each site.

A code is a byte by default. It holds the square root of the weight's share of the largest of its
head, so that weights far below a strong one are still told apart, and zero is exactly zero.
"""

import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UnknownNameError, UsageError

BYTES, HALVES = "8-bit", "float16"
PRECISIONS = (BYTES, HALVES)
_TOPS = {"uint8": 255, "int8": 127}
MANY = 2**18  # weights, from which on threads are worth their start
_OFFSETS = {"previous": -1, "same": 0, "next": 1}

Weights = NDArray[np.floating[Any]]


def site_sections(
    given: Sequence[tuple[str, tuple[str, int], tuple[Sequence[int], Sequence[int]], Weights]],
    precision: str = BYTES,
) -> list[dict[str, Any]]:
    """Sites of a payload, each given as `site_section` takes it; large ones are made side by side.

    Packing leaves the interpreter free.
    """
    threads = min(len(given), os.cpu_count() or 1)
    jobs = [
        partial(site_section, name, place, axes, weights, precision)
        for name, place, axes, weights in given
    ]
    if threads < 2 or sum(each[3].size for each in given) < MANY:
        return [job() for job in jobs]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda job: job(), jobs))


def site_section(
    name: str,
    place: tuple[str, int],
    axes: tuple[Sequence[int], Sequence[int]],
    weights: Weights,
    precision: str = BYTES,
) -> dict[str, Any]:
    """One site of a payload: `place` is its kind and layer, `axes` are its queries and keys."""
    if precision not in PRECISIONS:
        raise UnknownNameError("precision", precision, PRECISIONS)
    lowest = weights.min(axis=(1, 2), initial=0.0)
    limits = np.maximum(weights.max(axis=(1, 2), initial=0.0), -lowest).astype(np.float64)
    if not np.isfinite(limits).all():
        raise UsageError(f"the map at {name} has values that are not finite")
    signed = bool(lowest.min(initial=0.0) < 0)
    codes = _coded(weights, limits, signed, precision)
    return {
        "name": name,
        "kind": place[0],
        "layer": place[1],
        "queries": list(axes[0]),
        "keys": list(axes[1]),
        "shape": list(weights.shape),
        "limits": limits.tolist(),
        "codes": codes.dtype.name,
        "patterns": {} if signed else _patterns(weights, limits, codes, axes),
        "data": _packed(codes),
    }


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


def _packed(codes: NDArray[Any]) -> str:
    # Only runs and frequencies: as small as a search for repeats on attention, and much faster.
    packer = zlib.compressobj(level=1, memLevel=9, strategy=zlib.Z_RLE)
    return b64encode(packer.compress(codes.tobytes()) + packer.flush()).decode("ascii")


def _patterns(
    weights: Weights,
    limits: Weights,
    codes: NDArray[Any],
    axes: tuple[Sequence[int], Sequence[int]],
) -> dict[str, list[float]]:
    """How much each head looks at a neighbour, itself, the first token, or all about.

    Each is a share of the head's attention, a mean over its queries; `broad` is the entropy of a
    row, a share of the largest that its visible keys allow.
    """
    queries = weights.shape[1]
    if not weights.size:
        return {}
    found = {"first": weights[:, :, 0].mean(axis=1), "broad": _breadth(weights, limits, codes)}
    if list(axes[0]) == list(axes[1]):
        for name, step in _OFFSETS.items():
            found[name] = np.trace(weights, step, 1, 2) / max(1, queries - abs(step))
    return {name: np.round(values.astype(np.float64), 4).tolist() for name, values in found.items()}


def _breadth(weights: Weights, limits: Weights, codes: NDArray[Any]) -> Weights:
    heads, queries, keys = weights.shape
    causal = queries == keys > 1 and not weights[:, 0, 1:].any()
    visible = np.arange(1, queries + 1) if causal else np.full(queries, keys)
    most = float(np.log(visible).sum())
    if not most:
        return np.zeros(heads)
    values: NDArray[Any] = weights.reshape(heads, -1)
    counts: NDArray[Any] = np.ones(1)
    if codes.dtype == np.uint8:  # a head has 256 different weights at most: count them
        counts = np.stack([np.bincount(head.ravel(), minlength=256) for head in codes])
        values = (np.arange(256) / 255) ** 2 * limits[:, None]
    logs: NDArray[Any] = np.log(np.where(values > 0, values, 1.0))
    entropies: NDArray[Any] = -(counts * values * logs).sum(axis=1)
    return np.clip(entropies / most, 0.0, 1.0)
