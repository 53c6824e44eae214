"""BertViz's two views, called as BertViz is: attention that the caller holds, drawn by Attlas."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from attlas.errors import UnknownNameError, UsageError
from attlas.views.files import write_whole
from attlas.views.kinds import view_of
from attlas.views.map_codes import Weights, site_sections
from attlas.views.page import page

ACTIONS = ("view", "return")
MODES = ("light", "dark")
_SPECIAL = re.compile(r"\[[A-Z]{3,5}\]|<[^<>\s]{1,30}>")
_SPACES = str.maketrans({"Ġ": " ", "▁": " ", "Ċ": "\n"})
_HEIGHT = 860  # pixels of the frame in a notebook

Indices = Sequence[int] | None


@dataclass(frozen=True, eq=False)
class Shown:
    """A view that shows itself in a notebook; `to_html` and `data` are the page it is."""

    payload: Mapping[str, Any]

    @property
    def data(self) -> str:
        """The whole page as text."""
        return page(self.payload, self.payload["headline"])

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the page: one file that needs no network."""
        return write_whole(path, self.data)

    def _repr_html_(self) -> str:
        # A frame, so that neither style nor script of the page meets those of the notebook.
        page_text = html.escape(self.data, quote=True)
        look = f"width: 100%; height: {_HEIGHT}px; border: 0"
        return f'<iframe srcdoc="{page_text}" style="{look}" title="Attlas"></iframe>'

    def __repr__(self) -> str:
        sites = self.payload["maps"]["sites"]
        return f"Shown({len(sites)} sites, {len(self.payload['tokens'])} tokens)"

    def __rich__(self) -> Any:
        return view_of(self.payload).render(self.payload)


def head_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    layer: int | None = None,
    heads: Indices = None,
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Indices = None,
    html_action: str = "view",
) -> Shown:
    """Lines between tokens, for the heads of one layer at a time.

    `attention` has one array for each layer, `[1, head, query, key]`. `layer` and `heads` are those
    that are open at first; `include_layers` are those that the page has.
    """
    stacks = _stacks(locals())
    payload = _payload(stacks, sentence_b_start, prettify_tokens, include_layers, None, html_action)
    return Shown({**payload, "opens": {"view": "lines", **_opened(payload, layer, heads)}})


def model_view(
    attention: Any = None,
    tokens: Sequence[str] | None = None,
    sentence_b_start: int | None = None,
    prettify_tokens: bool = True,
    display_mode: str = "dark",
    encoder_attention: Any = None,
    decoder_attention: Any = None,
    cross_attention: Any = None,
    encoder_tokens: Sequence[str] | None = None,
    decoder_tokens: Sequence[str] | None = None,
    include_layers: Indices = None,
    include_heads: Indices = None,
    html_action: str = "view",
    importance: Sequence[Sequence[float]] | None = None,
) -> Shown:
    """Every head of the model, from afar to the figure of each weight.

    The arguments are those of `head_view`. `importance` has a number for each head of each layer
    that is shown, by which the page can sort them.
    """
    if display_mode not in MODES:
        raise UnknownNameError("display_mode", display_mode, MODES)
    stacks = _stacks(locals())
    payload = _payload(
        stacks, sentence_b_start, prettify_tokens, include_layers, include_heads, html_action
    )
    if importance is not None:
        _add_importance(payload["maps"]["sites"], importance)
    return Shown({**payload, "opens": {"view": "model", "scheme": display_mode}})


@dataclass(frozen=True, eq=False)
class _Stack:
    """The attention of one kind, a layer after another, and the streams that it joins."""

    kind: str
    layers: Sequence[Any]
    queries: str
    keys: str
    texts: Mapping[str, Sequence[str]]  # by stream


def _stacks(given: Mapping[str, Any]) -> list[_Stack]:
    """What the caller gave, as one stack for each kind of attention."""
    pairs = {
        "encoder_attention": ("encoder", "encoder"),
        "decoder_attention": ("decoder", "decoder"),
        "cross_attention": ("decoder", "encoder"),
    }
    others = [*pairs, "encoder_tokens", "decoder_tokens"]
    if given["attention"] is not None:
        if found := [name for name in others if given[name] is not None]:
            raise UsageError(f"attention is of one stream: do not give {found[0]} beside it")
        if given["tokens"] is None:
            raise UsageError("attention needs tokens, one for each query")
        texts = {"text": given["tokens"]}
        return [_Stack("layer", given["attention"], "text", "text", texts)]
    stacks = []
    for name, (query, key) in pairs.items():
        if given[name] is None:
            continue
        streams = {each: given[f"{each}_tokens"] for each in (query, key)}
        for stream, found in streams.items():
            if found is None:
                raise UsageError(f"{name} needs {stream}_tokens")
        kind = name.removesuffix("_attention")
        stacks.append(_Stack(kind, given[name], query, key, streams))
    if not stacks:
        raise UsageError(f"give attention, or one or more of {', '.join(pairs)}")
    return stacks


def _payload(
    stacks: Sequence[_Stack],
    sentence_b_start: int | None,
    prettify: bool,
    layers: Indices,
    heads: Indices,
    action: str,
) -> dict[str, Any]:
    if action not in ACTIONS:
        raise UnknownNameError("html_action", action, ACTIONS)
    streams = {name: texts for stack in stacks for name, texts in stack.texts.items()}
    starts = dict(zip(streams, np.cumsum([0, *map(len, streams.values())]).tolist(), strict=False))
    rows = [_token(str(text), name, prettify) for name, texts in streams.items() for text in texts]
    if sentence_b_start is not None:
        _part(rows, streams, sentence_b_start)
    sites = [site for stack in stacks for site in _sites(stack, starts, layers, heads)]
    return {
        "kind": "maps",
        "version": 1,
        "headline": "Where does each token look?",
        "tokens": rows,
        "sources": {},
        "pictures": [],
        "maps": {"signed": False, "shows": "attention", "sites": sites},
    }


def _token(text: str, segment: str, prettify: bool) -> dict[str, Any]:
    special = _SPECIAL.fullmatch(text) is not None
    plain = text.translate(_SPACES).removesuffix("</w>").removeprefix("##").strip(" ")
    label = plain if prettify and not special and plain else text
    place = {"segment": segment, "start": None, "end": None}
    return {"text": text, "label": label, "special": special, **place}


def _part(rows: list[dict[str, Any]], streams: Mapping[str, Any], start: int) -> None:
    """Part one text into two sentences."""
    if list(streams) != ["text"]:
        raise UsageError("sentence_b_start parts one text: give it with attention and tokens")
    if not 0 < start < len(rows):
        raise UsageError(f"sentence_b_start is from 1 to {len(rows) - 1}, not {start}")
    for place, row in enumerate(rows):
        row["segment"] = "sentence A" if place < start else "sentence B"


def _sites(
    stack: _Stack, starts: Mapping[str, int], layers: Indices, heads: Indices
) -> list[dict[str, Any]]:
    counts = [len(stack.texts[name]) for name in (stack.queries, stack.keys)]
    axes = tuple(
        list(range(starts[name], starts[name] + count))
        for name, count in zip((stack.queries, stack.keys), counts, strict=True)
    )
    wanted = _chosen("include_layers", layers, len(stack.layers))
    given, numbers = [], []
    for layer in wanted:
        name = f"{stack.kind}.{layer}"
        weights = _weights(stack.layers[layer], name, counts)
        numbers.append(_chosen("include_heads", heads, len(weights)))
        shown = weights if heads is None else weights[numbers[-1]]
        given.append((name, (stack.kind, layer), (axes[0], axes[1]), shown))
    pairs = zip(site_sections(given), numbers, strict=True)
    return [{**site, "numbers": own} for site, own in pairs]


def _chosen(name: str, given: Indices, count: int) -> list[int]:
    chosen = list(range(count)) if given is None else [int(each) for each in given]
    if not chosen or not all(0 <= each < count for each in chosen):
        raise UsageError(f"{name} holds numbers from 0 to {count - 1}, not {given!r}")
    return chosen


def _weights(given: Any, name: str, counts: Sequence[int]) -> Weights:
    """One layer as `[head, query, key]`; a tensor of torch is taken from where it is."""
    held = given.detach().cpu().float().numpy() if hasattr(given, "detach") else np.asarray(given)
    weights = held[0] if held.ndim == 4 and len(held) == 1 else held
    if weights.ndim != 3 or list(weights.shape[1:]) != list(counts):
        wanted = f"(1, heads, {counts[0]}, {counts[1]})"
        raise UsageError(f"the attention of {name} has shape {held.shape}, not {wanted}")
    if weights.dtype.kind != "f":
        raise UsageError(f"the attention of {name} holds {weights.dtype}, not floating numbers")
    return weights


def _opened(payload: Mapping[str, Any], layer: int | None, heads: Indices) -> dict[str, Any]:
    """What is open at first: layers and heads as the page counts them."""
    sites = payload["maps"]["sites"]
    numbers = [site["layer"] for site in sites]
    if layer is not None and layer not in numbers:
        raise UsageError(f"layer {layer} is not among the layers {sorted(set(numbers))}")
    place = 0 if layer is None else numbers.index(layer)
    chosen = _chosen("heads", heads, sites[place]["shape"][0])
    return {"layer": place, "head": chosen[0], "heads": ",".join(map(str, chosen))}


def _add_importance(sites: Sequence[dict[str, Any]], importance: Sequence[Sequence[float]]) -> None:
    rows = [[float(value) for value in row] for row in importance]
    shapes, wanted = [len(row) for row in rows], [site["shape"][0] for site in sites]
    if shapes != wanted or not np.isfinite([value for row in rows for value in row]).all():
        raise UsageError(f"importance has {shapes} finite numbers a layer, not {wanted}")
    for site, row in zip(sites, rows, strict=True):
        site["importance"] = row
