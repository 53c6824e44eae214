"""Attention maps alone: their sites, and the tokens that each attends to most."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Group
from rich.text import Text

from attlas.views.map_codes import read_site
from attlas.views.markup import QUIET, as_text, card, plain_table
from attlas.views.terminal import text_table
from attlas.views.units import layer_names, visible

_KEYS = 3  # tokens shown for each site
_HEAD = ["layer", "heads", "queries", "keys", "strongest tokens"]
_READING = "Weights are means over the heads and queries of a layer. to_html draws every head."


def render(payload: Mapping[str, Any]) -> Group:
    """A row for each site: its size, and the tokens with the largest mean weights."""
    shown = Text(f"maps of {visible(payload['maps']['shows'])}", style="dim")
    return Group(shown, text_table(_cells(payload)), Text(), Text(_READING, style="dim"))


def fragment(payload: Mapping[str, Any]) -> str:
    """The same table as HTML."""
    shown = f'<div style="{QUIET}">maps of {as_text(payload["maps"]["shows"])}</div>'
    table = plain_table(_cells(payload))
    return card([shown, table, f'<div style="{QUIET}">{_READING}</div>'])


def _cells(payload: Mapping[str, Any]) -> list[list[str]]:
    sites = payload["maps"]["sites"]
    named = layer_names(site["name"] for site in sites)
    rows = ([named[s["name"]], *map(str, s["shape"]), _keys(payload, s)] for s in sites)
    return [_HEAD, *([visible(name), *rest] for name, *rest in rows)]


def _keys(payload: Mapping[str, Any], site: Mapping[str, Any]) -> str:
    heads = read_site(site)
    if not heads.size:
        return ""
    weights = heads.mean(axis=(0, 1))
    order = np.argsort(-np.abs(weights), kind="stable")[:_KEYS]
    tokens = [payload["tokens"][site["keys"][place]]["label"] for place in order]
    pairs = zip(tokens, weights[order], strict=True)
    return ", ".join(f"{visible(token)} {weight:.3g}" for token, weight in pairs)
