"""Scope: which attention a trial may change, and what stays fixed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.encoding.inputs import Inputs
from attlas.models.tap.call import Call
from attlas.results import Site
from attlas.results.support.sums import LEAST_SHARE
from attlas.shapes import KeyMarks, QueryMarks, QueryWeights, Visible

KINDS = {
    "readout": "last layer, all heads, the rows that are read",
    "layer": "all heads, all rows with a path to the readout",
    "all": "all layers, all heads, all rows with a path to the readout",
    "token": "one key closed in all layers, heads and rows but its own",
}


@dataclass(frozen=True, eq=False)
class OpenSite:
    """What may change at one site: query rows with a path to the readout, and content keys.

    `sinks` are content keys that stay fixed like special tokens: a first token with most of the
    weight.
    """

    site: Site
    rows: QueryMarks
    keys: KeyMarks
    sinks: KeyMarks

    def entries(self, visible: Visible) -> Visible:
        """The weights that may change, `[batch, 1 or head, query, key]`."""
        return visible & self.rows[:, None, :, None] & self.keys[:, None, None, :]


@dataclass(frozen=True)
class Scope:
    """Which attention a trial may change, and what stays fixed; printed with every figure.

    `kind` is one of

    - `readout`: in the last layer, the rows that the prediction is read from; in an encoder–decoder
      those of the cross-attention;
    - `layer`: one layer of the same kind of attention, or each layer in turn if `layer` is None;
    - `all`: every site at once, each on the stream that the others have changed;
    - `token`: one key after the other, closed everywhere.
    """

    kind: str = "readout"
    layer: int | None = None
    frozen: bool = False  # whether the layers above keep their own attention
    specials: bool = False  # whether weights on special tokens and sinks may change too

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("scope", self.kind, KINDS)
        if self.layer is not None and self.kind != "layer":
            raise UsageError(
                f"the scope {self.kind} takes no layer, and layer={self.layer} was given"
            )

    def __str__(self) -> str:
        where = KINDS[self.kind]
        if self.kind == "layer":
            where = f"{'each layer' if self.layer is None else f'layer {self.layer}'}, {where}"
        keys = "all keys" if self.specials else "content keys"
        above = "keep" if self.frozen else "recompute"
        tail = "" if self.kind == "readout" else f"; the layers above {above} their attention"
        return f"{where}, {keys}; the rest stays fixed{tail}"

    def in_turn(self, subject: OpenModel) -> "tuple[Scope, ...]":
        """The scopes to try in turn: this one, or one for each layer if no layer is named."""
        if self.kind != "layer" or self.layer is not None:
            return (self,)
        return tuple(replace(self, layer=site.layer) for site in _of_last_kind(subject))

    def sites(self, subject: OpenModel) -> tuple[Site, ...]:
        """The sites whose attention may change, in the order of call."""
        if subject.reads_pairs:
            raise UnsupportedModelError(
                f"{subject.name} reads a text and a picture in turn: it has no one last attention"
            )
        if self.kind in ("all", "token"):
            return subject.sites
        layers = _of_last_kind(subject)
        if self.kind == "readout":
            return layers[-1:]
        if self.layer is None:
            return layers
        if not -len(layers) <= self.layer < len(layers):
            raise UsageError(
                f"unknown layer {self.layer}: this model has layers 0 to {len(layers) - 1}"
            )
        return (layers[self.layer],)

    def open_sites(self, question: Question) -> list[OpenSite]:
        """What may change at each of the sites, from one forward pass."""
        wanted = {site.name for site in self.sites(question.subject)}
        folded = fold_attention(question, _look)
        rows = rows_with_a_path(question.inputs, folded.held, folded.readout)
        looks = [look for look in folded.held if look.site.name in wanted]
        return [self._open(question.inputs, look, rows[look.site.name]) for look in looks]

    def _open(self, inputs: Inputs, look: "_Look", rows: QueryMarks) -> OpenSite:
        stream = inputs.queries_and_keys(look.site.kind)[1]
        special = torch.tensor([each.special[stream.start : stream.stop] for each in inputs.tokens])
        special = special.to(rows.device)
        sinks = torch.zeros_like(special)
        counted = (rows & look.sees_more).to(look.on_first)
        share = (look.on_first * counted).sum(dim=-1) / counted.sum(dim=-1).clamp_min(1)
        sinks[:, 0] = (share > LEAST_SHARE) & ~special[:, 0]
        keys = torch.ones_like(special) if self.specials else ~(special | sinks)
        return OpenSite(look.site, rows, keys, sinks)


@dataclass(frozen=True, eq=False)
class _Look:
    """What is kept of one attention: which key each query sees, and the weight on the first key."""

    site: Site
    visible: Tensor  # `[batch, query, key]`
    on_first: QueryWeights  # the mean over heads
    sees_more: QueryMarks  # whether a query sees more than one key


def _look(call: Call) -> _Look:
    visible = call.visible.any(dim=1)
    on_first = call.weights[..., 0].float().mean(dim=1)
    return _Look(call.site, visible, on_first, visible.sum(dim=-1) > 1)


def rows_with_a_path(
    inputs: Inputs, looks: Sequence[_Look], readout: QueryWeights
) -> dict[str, QueryMarks]:
    """For each site, the query rows that the readout can depend on.

    Going down from the last site, a row counts if it is read, or if a counted row of a site above
    sees its token.
    """
    reached = torch.zeros(
        len(inputs), len(inputs.tokens[0]), dtype=torch.bool, device=readout.device
    )
    last = inputs.prefix or inputs.source
    reached[:, last.start : last.stop] = readout > 0
    found = {}
    for look in reversed(looks):
        queries, keys = inputs.queries_and_keys(look.site.kind)
        lengths = (queries.stop - queries.start, keys.stop - keys.start)
        if tuple(look.visible.shape[1:]) != lengths:
            raise UnsupportedModelError(
                f"the attention at {look.site.name} is over {tuple(look.visible.shape[1:])} "
                f"positions, not over the {lengths} tokens of the input"
            )
        rows = reached[:, queries.start : queries.stop].clone()
        found[look.site.name] = rows
        reached[:, keys.start : keys.stop] |= (look.visible & rows[:, :, None]).any(dim=1)
    return found


def _of_last_kind(subject: OpenModel) -> tuple[Site, ...]:
    """The sites of the last kind: in an encoder–decoder, the cross-attention."""
    last = subject.sites[-1].kind
    return tuple(site for site in subject.sites if site.kind == last)
