"""Tree: the edges of attention behind a prediction, from the token it was read at downwards."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from attlas import views
from attlas.errors import UsageError
from attlas.results.support.files import plain
from attlas.results.support.origin import Origin, TargetRecord, why
from attlas.results.support.pictures import picture_rows
from attlas.results.support.result import Result
from attlas.results.support.words import token_rows, word_units
from attlas.tokens import Tokens
from attlas.views.units import visible


@dataclass(frozen=True)
class Edge:
    """In `layer`, `parent` attends to `child`, which adds `attribution` to the target."""

    layer: int
    parent: int
    child: int
    attribution: float


@dataclass(frozen=True, eq=False)
class Tree(Result):
    """The edges of attention behind a prediction.

    `root` and edges hold positions in `tokens`. An edge comes after the one whose child is its
    parent, and no token is the child of two edges. `share` is the share that the edges have in all
    positive attribution from one token to another.
    """

    view_kind: ClassVar[str] = "tree"
    record_kind: ClassVar[str] = "tree"

    tokens: Tokens
    root: int
    edges: tuple[Edge, ...]
    layers: int
    share: float
    target: TargetRecord
    origin: Origin
    prediction: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        inside = {self.root: self.layers}
        for edge in self.edges:
            if edge.parent not in inside or edge.child in inside:
                raise UsageError(f"{edge} does not continue the tree")
            inside[edge.child] = edge.layer
        if not all(0 <= place < len(self.tokens) for place in inside):
            raise UsageError(f"the tree has positions outside the {len(self.tokens)} tokens")
        object.__setattr__(self, "prediction", tuple(plain(each) for each in self.prediction))

    @property
    def nodes(self) -> dict[int, int]:
        """The positions in the tree, each with the layer that reads it; the root has `layers`."""
        return {self.root: self.layers, **{edge.child: edge.layer for edge in self.edges}}

    @property
    def tau(self) -> float:
        """The share of its layer's largest attribution that an edge had to exceed."""
        return float(self.origin.options["tau"])

    @property
    def lambda_(self) -> float:
        """The cost of an edge, which its attribution had to exceed."""
        return float(self.origin.options["lambda_"])

    def to_networkx(self) -> Any:
        """A `networkx.DiGraph` over positions of tokens; edges go from parent to child."""
        from networkx import DiGraph

        graph = DiGraph(root=self.root)
        labels = self.tokens.labels()
        for place, layer in self.nodes.items():
            segment = self.tokens.segments[place]
            graph.add_node(place, text=labels[place], segment=segment, layer=layer)
        for edge in self.edges:
            graph.add_edge(edge.parent, edge.child, layer=edge.layer, attribution=edge.attribution)
        return graph

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "tokens": self.tokens.to_dict(),
            "root": self.root,
            "edges": [asdict(edge) for edge in self.edges],
            "layers": self.layers,
            "share": self.share,
            "target": asdict(self.target),
            "origin": self.origin.to_dict(),
            "prediction": [dict(choice) for choice in self.prediction],
            "notes": list(self.notes),
        }

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws; a token scores its edge's attribution."""
        brought = {edge.child: edge.attribution for edge in self.edges}
        rows = token_rows(self.tokens)
        nodes = self.nodes
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": why(self.target, self.prediction, word_units(self.tokens)),
            **self.origin.view_facts(),
            "target": asdict(self.target),
            "prediction": [dict(choice) for choice in self.prediction],
            "tokens": [row | {"score": brought.get(i, 0.0)} for i, row in enumerate(rows)],
            "words": None,
            "sources": dict(self.tokens.sources),
            "pictures": picture_rows(self.tokens),
            "root": self.root,
            "edges": [asdict(edge) for edge in self.edges],
            "layers": self.layers,
            "share": self.share,
            "drawing": views.lay_out_tree(rows, nodes),
            "notes": list(self.notes),
            "code": self.code(),
        }

    def code(self) -> str:
        """The Python lines that compute this again; you must fill in a picture yourself."""
        return self.origin.code(picture=bool(self.tokens.grids))

    def _page_title(self) -> str:
        return f"tree · {self.target.name}"

    def to_figure(self, path: str | PathLike[str]) -> Path:
        """Write a drawing to a file that ends in `.svg`, or with matplotlib in `.png` or `.pdf`."""
        return views.write_whole(path, views.tree_figure(self.payload(), Path(path).suffix))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Tree":
        """Read what `to_dict` returned."""
        return cls(
            Tokens.from_dict(record["tokens"]),
            record["root"],
            tuple(Edge(**edge) for edge in record["edges"]),
            record["layers"],
            record["share"],
            TargetRecord(**record["target"]),
            Origin.from_dict(record["origin"]),
            tuple(record["prediction"]),
            tuple(record["notes"]),
        )

    def __repr__(self) -> str:
        root, target = visible(self.tokens.labels()[self.root]), visible(self.target.name)
        return f"Tree({target}, from {root}: {len(self.edges)} edges, {self.share:.0%} kept)"
