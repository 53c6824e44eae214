"""The base class of every result: saving, loading, and showing in a terminal, notebook or page."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType

from attlas import views
from attlas.errors import UsageError
from attlas.results.support.files import read_record, write_record

R = TypeVar("R", bound="Result")


class Result(ABC):
    """A frozen record that views draw by its payload, and that can be saved.

    `view_kind` is the kind of its payload, a file in `views/kinds`. `record_kind` is the
    word in a saved file that says what the file holds. A result whose JSON holds everything needs
    only `to_dict` and `from_dict` to be saved; one with arrays overrides `_to_record` and
    `_from_record`.
    """

    view_kind: ClassVar[str]
    record_kind: ClassVar[str]

    @abstractmethod
    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws, as JSON."""

    @abstractmethod
    def _page_title(self) -> str:
        """The title of the page that `to_html` writes."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The result as JSON."""

    @classmethod
    @abstractmethod
    def from_dict(cls: type[R], record: Mapping[str, Any]) -> R:
        """Read what `to_dict` returned."""

    def _to_record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What is saved: a header that JSON can hold, and arrays by name."""
        return self.to_dict(), {}

    @classmethod
    def _from_record(cls: type[R], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> R:
        """Read what `_to_record` returned."""
        return cls.from_dict(header)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the result to one safetensors file, with JSON in its header."""
        return write_record(path, self.record_kind, *self._to_record())

    @classmethod
    def load(cls: type[R], path: str | PathLike[str]) -> R:
        """Read what `save` wrote; what could not be shown is refused as damaged."""
        with read_record(path, cls.record_kind) as (header, arrays):
            result = cls._from_record(header, arrays)
            sketch = result._sketch()
            payload = sketch.payload()
            views.render(payload)
            views.fragment(payload)
            views.page(payload, sketch._page_title())
        return result

    def _sketch(self: R) -> R:
        """A result that can be drawn if this one can, and faster, if this one is large."""
        return self

    def html(self) -> str:
        """The page that shows the result."""
        return views.page(self.payload(), self._page_title())

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write a page that shows the result: one file that needs no network."""
        return views.write_whole(path, self.html())

    def plot(
        self,
        figure: str | None = None,
        *,
        ax: Any = None,
        width: float | int | str | None = None,
        **options: Any,
    ) -> Any:
        """Draw a figure for a paper with matplotlib, and return its axes.

        It is drawn into `ax` or, without it, into a new figure whose `savefig` writes PDF, SVG or
        PNG at its size. Nothing is shown and no state of matplotlib is changed.

        Args:
            figure: The name of the figure; without it, the one that shows most. A wrong name is
                answered with the right ones.
            ax: The axes to draw into.
            width: "single" (3.3 inches, one column of a paper), "double" (6.8) or inches.
            options: Options of the figure, such as `layer` and `head` of a matrix.
        """
        return views.draw(self.payload(), figure, ax, width, **options)

    def widget(self) -> Any:
        """A widget for a notebook, whose `state` Python and the notebook share.

        It needs the extra `notebook`, which brings anywidget.
        """
        try:
            from attlas.views.widget import Widget
        except ImportError as problem:
            raise UsageError(
                "a widget needs anywidget (the extra `notebook`): pip install 'attlas[notebook]'"
            ) from problem
        return Widget(self.payload())

    def _repr_html_(self) -> str:
        return views.fragment(self.payload())

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        yield views.render(self.payload())
