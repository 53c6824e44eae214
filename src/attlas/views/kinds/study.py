"""A study: in a terminal, and as HTML that needs no script."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from attlas.views.markup import QUIET, as_text, card, plain_table
from attlas.views.report_words import number
from attlas.views.terminal import notes, text_table, warning
from attlas.views.units import visible

Payload = Mapping[str, Any]
MARKS = {"reproduced": "✓", "partly": "◐", "not reproduced": "✕", "not tested here": "·"}


def render(payload: Payload) -> Group:
    """The question, the claims with their verdicts, the tables, and what differs."""
    return Group(
        Text(visible(f"study {payload['name']} · {payload['paper']}"), style="dim"),
        Text(visible(payload["question"]), style="bold"),
        *warning(payload),
        Text(visible(payload["answer"])),
        *(line for claim in payload["claims"] for line in _claim(claim)),
        *(line for table in payload["tables"] for line in _table(table)),
        *_plot_titles(payload),
        *_list("What differs in the set-up", payload["differs"]),
        *notes(payload),
        Text(),
        Text(_facts(payload), style="dim"),
    )


def fragment(payload: Payload) -> str:
    """The same, as HTML."""
    warned = payload["warning"]
    claims = [["claim", "published", "ours", "verdict"]]
    for claim in payload["claims"]:
        claims.append(
            [claim["said"], number(claim["published"], 3), _ours(claim), claim["verdict"]]
        )
    tables = [
        part
        for table in payload["tables"]
        for part in (f"<div><b>{as_text(table['title'])}</b></div>", plain_table(table["cells"]))
    ]
    told = [*(f"Differs: {each}" for each in payload["differs"]), *payload["notes"]]
    return card(
        [
            f'<div style="{QUIET}">{as_text("study " + payload["name"])} · '
            f"{as_text(payload['paper'])}</div>",
            f'<div style="font-size:16px"><b>{as_text(payload["headline"])}</b></div>',
            *([f"<div><b>{as_text(warned)}</b></div>"] if warned else []),
            f"<div>{as_text(payload['answer'])}</div>",
            plain_table(claims),
            *tables,
            *(f'<div style="{QUIET}">{as_text(each)}</div>' for each in told),
            f'<div style="{QUIET}">{as_text(_facts(payload))}</div>',
        ]
    )


def _claim(claim: Payload) -> Iterator[Text]:
    mark, verdict = MARKS.get(claim["verdict"], "·"), visible(claim["verdict"])
    yield Text()
    yield Text(f"{mark} {verdict}: {visible(claim['said'])}", style="bold")
    if claim["ours"] is not None:
        published = number(claim["published"], 3)
        yield Text(f"  ours {_ours(claim)} · published {published} · {_gap(claim)}")
    if claim["found"]:
        yield Text(f"  {visible(claim['found'])}")
    yield Text(f"  Rule: {visible(claim['rule'])}. {visible(claim['source'])}", style="dim")


def _ours(claim: Payload) -> str:
    ours = claim["ours"]
    if ours is None:
        return "–"
    if ours["low"] is None or ours["high"] is None:
        return number(ours["value"], 3)
    ends = f"{number(ours['low'], 3)} to {number(ours['high'], 3)}"
    return f"{number(ours['value'], 3)} ({ends} over {visible(claim['over'])})"


def _gap(claim: Payload) -> str:
    return f"difference {number(claim['difference'], 3)}"


def _table(table: Payload) -> Iterator[Any]:
    yield Text()
    yield Text(visible(table["title"]), style="bold")
    yield Text(visible(table["reading"]), style="dim")
    yield text_table([[visible(cell) for cell in row] for row in table["cells"]])


def _plot_titles(payload: Payload) -> Iterator[Text]:
    if payload["plots"]:
        titles = ", ".join(visible(plot["title"]) for plot in payload["plots"])
        yield from (Text(), Text(f"Drawn on the page: {titles}", style="dim"))


def _list(title: str, sentences: list[str]) -> Iterator[Text]:
    if sentences:
        yield from (Text(), Text(title, style="bold"))
    for each in sentences:
        yield Text(f"  {visible(each)}")


def _facts(payload: Payload) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in payload["settings"].items())
    seeds = f" · seeds {', '.join(map(str, payload['seeds']))}" if payload["seeds"] else ""
    return visible(f"{settings}{seeds} · {payload['machine']} · {payload['seconds']:.1f} s")
