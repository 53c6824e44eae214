"""CheckResult: whether Attlas opens a model exactly, and which methods can run on it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from attlas.results.maps import Site
from attlas.results.support.result import Result


@dataclass(frozen=True)
class CheckResult(Result):
    """What `attlas.check` found when it opened a model at its attention."""

    view_kind: ClassVar[str] = "check"
    record_kind: ClassVar[str] = "check"

    model: str
    kind: str  # the model's class
    task: str
    sites: tuple[Site, ...]
    exact: bool  # with the tap open, the output is bit-identical to eager attention
    restored: bool  # after the tap is closed, the output is bit-identical to before
    editable: bool  # an edit that copies the weights leaves the output bit-identical
    differentiable: bool  # every site has a finite gradient, and at least one is not zero
    second_road: bool  # some attention does not use the interface and is read at its own softmax
    branches: str  # why variants cannot share a forward pass; empty if they can
    backend: str  # the attention implementation that the model was loaded with
    distance: float  # how far the opened model's output is from that, as a share of the largest
    methods: Mapping[str, str]  # for each method why it cannot run; empty if it can
    faithful: bool = True  # that distance is no more than rounding explains
    to_the_bit: bool = True  # else eager is another function; `exact`, `editable`: up to rounding

    @property
    def passed(self) -> bool:
        """Whether the model is opened exactly, as the function it was, and left as it was."""
        return self.exact and self.restored and self.editable and self.faithful

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        names, heads = [site.name for site in self.sites], [site.heads for site in self.sites]
        return asdict(self) | {"passed": self.passed, "sites": names, "heads": heads}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "CheckResult":
        """Read what `to_dict` returned."""
        given = {each.name: record[each.name] for each in fields(cls) if each.name in record}
        pairs = zip(record["sites"], record["heads"], strict=True)
        sites = tuple(Site(*_kind_and_layer(name), heads) for name, heads in pairs)
        return cls(**{**given, "sites": sites})

    def _to_record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"check": self.to_dict()}, {}  # the header of a file has its own `kind`

    @classmethod
    def _from_record(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> "CheckResult":
        return cls.from_dict(header["check"])

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": f"Is {self.model} opened exactly?",
            "model": self.model,
            "task": self.task,
            "tokens": [],
            "passed": self.passed,
            "answers": [
                {"question": question, "answer": answer} for question, answer in self._answers()
            ],
            "methods": dict(self.methods),
        }

    def _page_title(self) -> str:
        return f"check · {self.model}"

    def _answers(self) -> list[tuple[str, str]]:
        def word(good: bool) -> str:
            return f"yes, {bits}" if good else "NO"

        bits = "to the bit" if self.to_the_bit else "up to rounding; its eager is another function"

        last = {site.kind: site for site in self.sites}
        sites = ", ".join(f"{s.layer + 1} {kind} × {s.heads} heads" for kind, s in last.items())
        return [
            ("model", f"{self.model} ({self.kind}, {self.task or 'no head'})"),
            ("sites", f"{len(self.sites)}: {sites}"),
            ("opened exactly", word(self.exact)),
            ("left as it was", "yes, to the bit" if self.restored else "NO"),
            ("can be edited", word(self.editable)),
            ("has gradients", "yes" if self.differentiable else "NO"),
            ("met at", "its own softmax" if self.second_road else "the attention interface"),
            ("can branch", self.branches or "yes"),
            ("came with", f"{self.backend}; opened, its output moves by {self._moves()}"),
        ]

    def _moves(self) -> str:
        if not self.distance:
            return "nothing"
        judged = "rounding" if self.faithful else "MORE THAN ROUNDING: it is another function"
        return f"{self.distance:.1e} of its size, {judged}"


def _kind_and_layer(name: str) -> tuple[str, int]:
    kind, layer = name.rsplit(".", 1)
    return kind, int(layer)
