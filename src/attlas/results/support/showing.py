"""Results that show themselves: in a notebook and in a terminal, from their payload."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType

from attlas import views


class Shown:
    """A result with a `payload`, shown by the notebook or the console that asks."""

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return views.fragment(self.payload())

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        yield views.render(self.payload())
