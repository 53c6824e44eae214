"""The paper that figures are drawn on: its sizes, fonts and colours, and text that stays text."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager, get_font
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from attlas.errors import UsageError
from attlas.views.colours import LIGHT, css
from attlas.views.units import visible

WIDTHS = {"single": 3.3, "double": 6.8}  # inches: one column of a paper, or both
HIGHEST = 8.5  # inches that a figure may be high
SMALL, BODY = 7.0, 8.0  # points
LINE = 0.135  # inches from one line of small text to the next
PAPER = replace(LIGHT, paper=(255, 255, 255))
INK, QUIET, RULE = css(PAPER.inks[0]), "#66625a", "#b3afa5"
TINTS = (
    css(PAPER.plain),
    css(PAPER.favour),
    "#7a5ab8",
    "#3d7fc4",
    "#b5495b",
    "#6b7f1e",
    "#8c5a2b",
    "#4d4a45",
)
PLAIN = {"parse_math": False, "usetex": False}  # a token is never read as a formula
_FAMILIES = (  # asked in turn for a sign; those that are not installed are left out
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans Arabic",
    "Noto Sans Hebrew",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Noto Emoji",
    "Noto Sans Symbols2",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "Segoe UI Symbol",
    "Apple Symbols",
    "Symbola",
)
_NO_GLYPH = "Glyph .* missing from"  # matplotlib's own warning, one for each sign and drawing
Payload = Mapping[str, Any]
Number = float | int


class PaperFigure(Figure):
    """A figure that is drawn and saved with the settings of a paper, whatever the user's are.

    Fonts are embedded as TrueType (type 42) in PDF, and text stays text in SVG.
    """

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure; a picture of dots has 300 in an inch."""
        with _settings():
            super().savefig(fname, **options)

    def draw(self, renderer: Any) -> None:
        """Draw the figure."""
        with _settings():
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png", dpi=200)
        return out.getvalue()


class PaperAxes(Axes):
    """Axes that show their figure in a notebook."""

    def _repr_png_(self) -> bytes:
        figure: Any = self.get_figure(root=True)
        return bytes(figure._repr_png_())


class Room:
    """Where a figure is drawn: the user's axes, or axes on new paper of a given width."""

    def __init__(self, ax: Any, width: Number | str | None) -> None:
        if ax is not None and width is not None:
            raise UsageError("give ax or width, not both: the axes have a width already")
        if ax is not None and not isinstance(ax, Axes):
            raise UsageError(f"ax takes axes of matplotlib, not {type(ax).__name__}")
        self.given = ax
        self.width = _inches("single" if width is None else width) if ax is None else _size(ax)[0]

    def axes(
        self,
        height: float,
        *,
        left: Number = 0,
        right: Number = 0,
        bottom: Number = 0,
        top: Number = 0,
    ) -> Any:
        """Axes of this height with these margins, in inches; the user's axes are as they are."""
        if self.given is not None:
            return self.given
        whole = height + bottom + top
        figure = PaperFigure((self.width, whole), dpi=200, facecolor="white")
        across = (self.width - left - right) / self.width
        place = (left / self.width, bottom / whole, across, height / whole)
        return figure.add_axes(PaperAxes(figure, place))


def drawn(
    function: Callable[..., Any], room: Room, payload: Payload, options: Mapping[str, Any]
) -> Any:
    """The axes that a function draws; a warning names the signs that no font has."""
    with _settings():
        axes = function(room, payload, **options)
        said = {sign for text in axes.findobj(Text) for sign in text.get_text()}
    if lost := sorted(said - {sign for sign in said if _has(sign)}):
        warnings.warn(
            f"no font on this machine has {' '.join(lost)}: a picture shows boxes in their place",
            stacklevel=4,
        )
    return axes


def text_width(words: str, size: float = SMALL) -> float:
    """The width of a text in inches."""
    with _settings():
        found = text_to_path.get_text_width_height_descent(words, _font(size), ismath=False)
    return float(found[0]) / 72


def widest(labels: Iterable[str], size: float = SMALL) -> float:
    """The width in inches of the widest of some labels."""
    return max((text_width(each, size) for each in labels), default=0.0)


def write(axes: Any, x: Number, y: Number, words: str, **look: Any) -> Any:
    """Write a text into axes, as it is."""
    return axes.text(x, y, words, **{"size": SMALL, "color": INK, **PLAIN, **look})


def shorten(text: str, longest: int = 24) -> str:
    """A text as it is shown, cut if it is too long for a label."""
    shown = visible(text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def cut(text: str, width: float) -> str:
    """The text, cut so that it is at most so many inches wide."""
    shown = text
    while len(shown) > 2 and text_width(shown) > width:
        shown = shown[:-2].rstrip() + "…"
    return shown


def name_ticks(axes: Any, side: str, labels: Sequence[str], pitch: float) -> None:
    """Write labels at 0, 1, 2, … of the x or the y axis, `pitch` inches apart.

    Where they would touch, only every second, third and so on is written.
    """
    step = max(1, int(np.ceil(LINE * 0.85 / pitch))) if pitch else 1
    places = list(range(0, len(labels), step))
    turned = {"rotation": 90} if side == "x" else {}
    shown = [labels[place] for place in places]
    getattr(axes, f"set_{side}ticks")(places, shown, size=SMALL, color=INK, **turned, **PLAIN)


def quiet_axes(axes: Any, *sides: str) -> None:
    """Keep only these sides of the frame, and thin quiet ticks."""
    for side, spine in axes.spines.items():
        spine.set(visible=side in sides, color=RULE, linewidth=0.6)
    look = {"length": 2, "width": 0.6, "color": RULE, "labelcolor": INK, "labelsize": SMALL}
    axes.tick_params(which="both", **look)


def say(axes: Any, *, x: str = "", y: str = "", title: str = "") -> None:
    """Name the axes, and say above them on the left what is drawn."""
    if x:
        axes.set_xlabel(x, size=SMALL, color=QUIET, labelpad=3, **PLAIN)
    if y:
        axes.set_ylabel(y, size=SMALL, color=QUIET, labelpad=3, **PLAIN)
    if title:
        axes.set_title(title, size=SMALL, color=QUIET, loc="left", pad=4, **PLAIN)


def colours(signed: bool) -> Colormap:
    """The colours of scores from -1 to 1, or from 0 to 1 if they have no sign."""
    poles = [PAPER.against, PAPER.paper, PAPER.favour] if signed else [PAPER.paper, PAPER.plain]
    made = LinearSegmentedColormap.from_list("attlas", [css(each) for each in poles])
    return made.with_extremes(bad="#e8e6e0")


def image_of(axes: Any, values: Any, top: float, signed: bool, **look: Any) -> Any:
    """A table of numbers as coloured cells, row 0 above; `top` has the full colour."""
    limits = {"vmin": -top if signed else 0.0, "vmax": top or 1.0}
    given = {"aspect": "auto", "interpolation": "nearest", "origin": "upper", **look}
    return axes.imshow(values, cmap=colours(signed), **limits, **given)


def colour_bar(axes: Any, image: Any) -> None:
    """A scale at the right of the axes; it needs half an inch."""
    width, height = _size(axes)
    room = axes.inset_axes((1 + 0.07 / width, 0.0, 0.08 / width, min(1.0, 1.2 / height)))
    bar = axes.get_figure(root=True).colorbar(image, cax=room)
    bar.outline.set_visible(False)
    bar.formatter.set_powerlimits((-2, 4))  # small numbers as 1e−3, so that they fit
    room.yaxis.get_offset_text().set(size=SMALL, color=INK)
    room.tick_params(length=2, width=0.6, color=RULE, labelcolor=INK, labelsize=SMALL)
    room.locator_params(nbins=4)


@cache
def families() -> list[str]:
    """The installed fonts that are asked in turn for a sign."""
    installed = {font.name for font in fontManager.ttflist}
    return [name for name in _FAMILIES if name in installed]


def _font(size: float) -> FontProperties:
    return FontProperties(family=families(), size=size)


@cache
def _signs() -> frozenset[int]:
    """The signs that the fonts have."""
    found: set[int] = set()
    for name in families():
        path = fontManager.findfont(FontProperties(family=[name]), fallback_to_default=False)
        found |= set(get_font(path).get_charmap())
    return frozenset(found)


def _has(sign: str) -> bool:
    return ord(sign) in _signs() or sign.isspace() or sign in "\u200b\u200c\u200d\ufe0e\ufe0f"


@contextmanager
def _settings() -> Iterator[None]:
    """matplotlib with the settings of a paper, until the block ends."""
    given = {
        "font.family": families(),
        "font.size": SMALL,
        "text.usetex": False,
        "text.parse_math": False,
        "axes.unicode_minus": True,
        "axes.linewidth": 0.6,
        "axes.prop_cycle": "cycler('color', ['#0c5c5e'])",
        "savefig.dpi": 300,
        "savefig.bbox": None,
        "savefig.transparent": False,
        "savefig.facecolor": "white",
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "svg.fonttype": "none",
        "svg.hashsalt": "attlas",
    }
    with rc_context(given), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_GLYPH)
        yield


def _inches(width: Number | str) -> float:
    found = WIDTHS.get(width) if isinstance(width, str) else float(width)
    if found is None or not 1.0 <= found <= 40.0:
        raise UsageError(f"width is {', '.join(WIDTHS)} or inches from 1 to 40, not {width!r}")
    return found


def _size(axes: Any) -> tuple[float, float]:
    """The width and the height of axes in inches."""
    figure = axes.get_figure(root=True)
    box = axes.get_window_extent()
    return float(box.width / figure.dpi), float(box.height / figure.dpi)
