"""A comparison: each explanation as coloured text, a table of words, and the agreement of pairs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from rich.console import Group
from rich.style import Style
from rich.text import Text

from attlas.views import markup, terminal
from attlas.views.colours import DARK, LIGHT, background, css, ink, pole, strength
from attlas.views.terminal import fit
from attlas.views.units import ShownUnit, scored_units, visible, with_places

WIDTH = 80  # columns of a terminal
_LABEL = 16  # columns of a word
_FIGURE = 5  # columns of a share: +0.42
_LEAST = 14  # columns of an explanation in the table, at least
_STRONGEST = 12  # words in the table
_SIGNS = {True: "for and against it", False: "strength alone, no sign"}


def render(payload: Mapping[str, Any]) -> Group:
    """Each explanation as coloured text, a table of the strongest words, how every two agree."""
    parts: list[Any] = [Text(visible(payload["headline"]), style="bold")]
    for row in payload["rows"]:
        parts += [Text(), _title(row), *_coloured(payload, row)]
    tables = [line for rows in _blocks(payload["rows"]) for line in _table(payload, rows)]
    reading, noted = Text(payload["reading"], style="dim"), terminal.notes(payload)
    return Group(*parts, *tables, Text(), *_pair_lines(payload), Text(), reading, *noted)


def fragment(payload: Mapping[str, Any]) -> str:
    """The same as HTML."""
    parts = [markup.question(payload, markup.as_text(payload["model"] or "several models"))]
    for row in payload["rows"]:
        parts.append(f'<div style="margin-top:8px">{_html_title(row)}</div>')
        parts += markup.coloured_text({**payload, "signed": row["signed"]}, _units(payload, row))
    parts += [_html_table(payload), markup.plain_table(_pair_cells(payload))]
    return markup.card([*parts, *markup.notes(payload)])


def _units(payload: Mapping[str, Any], row: Mapping[str, Any]) -> list[ShownUnit]:
    """The words with the scores of one explanation, as they stand in its text."""
    units = scored_units({"tokens": payload["tokens"]}, [each or 0.0 for each in row["scores"]])
    if not row["words"]:
        return units
    return [
        replace(unit, text=visible(word["text"]), start=word["start"], end=word["end"])
        for unit, word in zip(units, row["words"], strict=True)
        if word
    ]


def _title(row: Mapping[str, Any]) -> Text:
    """The name of an explanation, its target, and whether its scores have a sign."""
    target = row["target"]
    told = f"  target {target['name']}, {_SIGNS[row['signed']]}"
    return Text(visible(row["name"]), style="bold").append(visible(told), style="dim")


def _html_title(row: Mapping[str, Any]) -> str:
    told = f"target {row['target']['name']}, {_SIGNS[row['signed']]}"
    quiet = f'<span style="{markup.QUIET}">{markup.as_text(told)}</span>'
    return f"<b>{markup.as_text(row['name'])}</b> {quiet}"


def _coloured(payload: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[Text]:
    return terminal.coloured_text({**payload, "signed": row["signed"]}, _units(payload, row))


def _strongest(payload: Mapping[str, Any]) -> list[int]:
    """The words that are strongest in any explanation, in the order of the text."""
    most = [
        max(abs(_share(row, place)) for row in payload["rows"])
        for place in range(len(payload["tokens"]))
    ]
    order = sorted(range(len(most)), key=lambda place: -most[place])
    return sorted(order[:_STRONGEST])


def _share(row: Mapping[str, Any], place: int) -> float:
    return strength(row["scores"][place] or 0.0, row["limit"])


def _labels(payload: Mapping[str, Any]) -> list[str]:
    """The words; where texts differ, those of all."""
    written = [row["words"] for row in payload["rows"] if row["words"]]
    if written:
        held = [[word["text"] for word in each if word] for each in zip(*written, strict=True)]
        return ["/".join(dict.fromkeys(map(visible, each))) for each in held]
    zeros = [0.0] * len(payload["tokens"])
    return [unit.text for unit in with_places(scored_units({"tokens": payload["tokens"]}, zeros))]


def _blocks(rows: Sequence[Mapping[str, Any]]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """The explanations in groups that a table of 80 columns has room for."""
    most = (WIDTH - _LABEL) // (_LEAST + 1)
    for start in range(0, len(rows), most):
        yield rows[start : start + most]


def _table(payload: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    """A line for each word: its share of the strongest in each explanation, with a bar."""
    width = min(28, (WIDTH - _LABEL) // len(rows) - 1)
    labels = _labels(payload)
    heads = " ".join(fit(visible(row["name"]), width) for row in rows)
    yield Text()
    yield Text(f"{fit('share', _LABEL)} {heads}".rstrip(), style="dim")
    for place in _strongest(payload):
        line = Text(fit(labels[place], _LABEL), no_wrap=True)
        for row in rows:
            line.append(" ").append_text(_cell(row, place, width))
        line.rstrip()
        yield line


def _cell(row: Mapping[str, Any], place: int, width: int) -> Text:
    if row["scores"][place] is None:
        return Text("–".rjust(_FIGURE).ljust(width))
    share = _share(row, place)
    shown = format(share, "+.2f" if row["signed"] else ".2f").rjust(_FIGURE)
    room = width - _FIGURE - 1
    bar = "█" * round(abs(share) * room)
    colour = Style(color=css(pole(share, row["signed"], DARK)))
    # Without colour, what is against the target still looks different.
    sign = bar if share >= 0 else bar.replace("█", "▒")
    return Text(f"{shown} ").append(sign.ljust(room), style=colour)


def _pair_cells(payload: Mapping[str, Any]) -> list[list[str]]:
    names, top = [row["name"] for row in payload["rows"]], payload["top"]
    head = ["one", "other", "τ", f"of the {top} strongest", "by chance", "compared by", "words"]
    return [
        head,
        *(
            [
                names[pair["one"]],
                names[pair["other"]],
                "none" if pair["tau"] is None else f"{pair['tau']:+.2f}",
                f"{round(top * pair['overlap'], 1):g}",
                f"{round(top * pair['chance'], 1):g}",
                pair["by"],
                str(pair["words"]),
            ]
            for pair in payload["pairs"]
        ),
    ]


def _pair_lines(payload: Mapping[str, Any]) -> Iterator[Text]:
    """A line for every two explanations, within 80 columns."""
    top, (_, *rows) = payload["top"], _pair_cells(payload)
    star = ["* by strength alone"] if any("strength" in row for row in rows) else []
    yield Text(f"How far they agree: τ over their words; how many of the top {top} are in both")
    for (one, other, tau, overlap, chance, by, _), pair in zip(rows, payload["pairs"], strict=True):
        both = f"{fit(visible(one), 22)} {fit(visible(other), 22)}"
        told = f"τ {tau:>5}  top {top}: {overlap} (chance {chance})"
        yield Text(f"{both} {told}{' *' if by == 'strength' else ''}", no_wrap=True)
        if held := _held(payload, pair):
            yield Text(f"  {held}", style="dim")
    yield from map(Text, star)


def _held(payload: Mapping[str, Any], pair: Mapping[str, Any]) -> str:
    """How many words two texts have in common; empty if all."""
    rows = [payload["rows"][pair[name]] for name in ("one", "other")]
    one, other = [sum(each is not None for each in row["scores"]) for row in rows]
    if pair["words"] == one == other:
        return ""
    return f"{pair['words']} words are compared, of {one} and {other}"


def _html_table(payload: Mapping[str, Any]) -> str:
    labels = _labels(payload)
    head = [("", ""), *((row["name"], "") for row in payload["rows"])]
    body = [
        [(labels[place], "text-align:left"), *(_html_cell(row, place) for row in payload["rows"])]
        for place in _strongest(payload)
    ]
    reading = '<div style="{}">{}</div>'.format(
        markup.QUIET, escape("Shares of the strongest word of each:")
    )
    return reading + markup.html_table([head, *body])


def _html_cell(row: Mapping[str, Any], place: int) -> tuple[str, str]:
    if row["scores"][place] is None:
        return "–", ""
    share = _share(row, place)
    paper = background(share, row["signed"], LIGHT)
    look = f"background-color:{css(paper)};color:{css(ink(paper, LIGHT))}"
    return format(share, "+.2f" if row["signed"] else ".2f"), look
