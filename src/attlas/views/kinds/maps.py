"""Attention maps alone: their sites, and the tokens that each attends to most."""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Group
from rich.text import Text

from attlas.views.markup import QUIET, card, plain_table
from attlas.views.terminal import text_table
from attlas.views.units import visible

_KEYS = 3  # tokens shown for each site
_HEAD = ["site", "heads", "queries", "keys", "attends most to"]
_READING = "Weights are means over the heads and queries of a site. to_html draws every head."


def render(payload: Mapping[str, Any]) -> Group:
    """A row for each site: its size, and the tokens with the largest mean weights."""
    return Group(text_table(_cells(payload)), Text(), Text(_READING, style="dim"))


def fragment(payload: Mapping[str, Any]) -> str:
    """The same table as HTML."""
    return card([plain_table(_cells(payload)), f'<div style="{QUIET}">{_READING}</div>'])


def _cells(payload: Mapping[str, Any]) -> list[list[str]]:
    sites = payload["maps"]["sites"]
    return [_HEAD, *([visible(s["name"]), *map(str, s["shape"]), _keys(payload, s)] for s in sites)]


def _keys(payload: Mapping[str, Any], site: Mapping[str, Any]) -> str:
    steps = np.frombuffer(b64decode(site["data"]), np.uint8).reshape(site["shape"])
    if not steps.size:
        return ""
    weights = site["low"] + steps.mean(axis=(0, 1)) / 255 * (site["high"] - site["low"])
    order = np.argsort(-np.abs(weights), kind="stable")[:_KEYS]
    tokens = [payload["tokens"][site["keys"][place]]["label"] for place in order]
    pairs = zip(tokens, weights[order], strict=True)
    return ", ".join(f"{visible(token)} {weight:.3g}" for token, weight in pairs)
