"""CheckResult: whether a model is opened exactly, and which methods can run on it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from attlas.results.maps import Site


@dataclass(frozen=True)
class CheckResult:
    """What was found when a model was opened at its attention."""

    model: str
    kind: str  # the model's class
    task: str
    sites: tuple[Site, ...]
    exact: bool  # with the tap open, bit-identical to the same model on eager attention
    restored: bool  # with the tap closed again, bit-identical to before
    editable: bool  # an edit that changes nothing changes nothing, to the bit
    differentiable: bool  # every site has a finite gradient, and some site a gradient at all
    second_road: bool  # whether some attention is met at a softmax of its own, off the interface
    branches: str  # why variants cannot share a forward pass, or nothing
    backend: str  # the attention implementation the model came with
    distance: float  # how far that one is from eager, at most, in the output
    methods: Mapping[str, str]  # each method, with why it cannot run, or nothing

    @property
    def passed(self) -> bool:
        """Whether the model is opened exactly and left as it was."""
        return self.exact and self.restored and self.editable

    def payload(self) -> dict[str, Any]:
        """The result as JSON."""
        return asdict(self) | {"passed": self.passed, "sites": [site.name for site in self.sites]}

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        table = Table.grid(padding=(0, 2))
        for question, answer in self._answers():
            table.add_row(Text(question), Text(answer))
        yield table
        methods = Table.grid(padding=(0, 2))
        for name, reason in self.methods.items():
            methods.add_row(Text(f"  {name}"), Text(reason or "yes"))
        yield Text("methods that can run")
        yield methods

    def _answers(self) -> list[tuple[str, str]]:
        def word(good: bool) -> str:
            return "yes, to the bit" if good else "NO"

        last = {site.kind: site for site in self.sites}
        sites = ", ".join(f"{s.layer + 1} {kind} × {s.heads} heads" for kind, s in last.items())
        return [
            ("model", f"{self.model} ({self.kind}, {self.task or 'no head'})"),
            ("sites", f"{len(self.sites)}: {sites}"),
            ("opened exactly", word(self.exact)),
            ("left as it was", word(self.restored)),
            ("can be edited", word(self.editable)),
            ("has gradients", "yes" if self.differentiable else "NO"),
            ("met at", "its own softmax" if self.second_road else "the attention interface"),
            ("can branch", self.branches or "yes"),
            ("came with", f"{self.backend}, at most {self.distance:.1e} from eager in the output"),
        ]
