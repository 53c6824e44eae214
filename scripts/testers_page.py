"""The pages of the testers' survey: what opens, and which method runs on which family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from compatibility_page import OPENED, VERDICTS, Row, against, count, describe, named, share

RAN, REFUSED, UNDEFINED, LONG, RAW = "ran", "refused", "not defined", "too long", "raw error"
SIGNS = {RAN: "✓", REFUSED: "–", UNDEFINED: "·", LONG: "…", RAW: "✗"}


@dataclass(frozen=True)
class Tried:
    """A class as it was opened, and what each method made of it; None without a head."""

    row: Row
    cells: dict[str, str] | None


PAGE = """\
# Compatibility with transformers' own test models

`scripts/compatibility.py --testers CHECKOUT --write docs/compatibility_testers.md` writes this page
and [the one of the methods](compatibility_testers_methods.md). It builds every class that the
tests of a transformers checkout try, as they build it (small, with random weights), and opens it
as [the other survey](compatibility.md) does: the same comparisons, the same words. The models are
those of the installed library ({versions}); a class that this version
cannot build, or that needs a library that is not there, is **not built**. A family that was tried
before counts as it was found then; `--only FAMILY` tries it again.

| families | classes | {heads} | share opened |
|---|---|{lines}---|
| {families} | {classes} | {counts} | **{share:.1%}** |

## Not opened

{closed}

## Every class

| family | class | | attention | compared | notes |
|---|---|---|---|---|---|
{table}
"""

METHODS_PAGE = """\
# Methods on transformers' own test models

Every method on every class of [the survey](compatibility_testers.md) that has a head and could be
opened: {classes} classes of {families} families. Samples and steps are few; what counts is whether
`explain` returns finite scores. A cell has how many of the family's classes ran; ✓ is all of them,
– is a refusal by name, and · one because the method has no meaning on such a model: its error is a
`NotDefinedError`; … is more than the survey waits for. {raw} of {cells} cells are raw
errors{broken}.

| method | ran | refused | not defined | too long | raw errors | of all | of defined |
|---|---|---|---|---|---|---|---|
{shares}

## Why methods are refused

Each reason with the number of classes; **not defined** stands before those that lie outside the
method's definition, which the last column above leaves out.

{reasons}

## Method × family

| family | classes | {methods} |
|---|---|{lines}
{table}
"""


def write(page: Path, tried: Sequence[Tried], versions: str) -> None:
    """Write the page of the tap, and beside it that of the methods."""
    page.write_text(tap_page([each.row for each in tried], versions))
    beside = page.with_name(f"{page.stem}_methods.md")
    beside.write_text(methods_page([each for each in tried if each.cells is not None]))


def tap_page(rows: Sequence[Row], versions: str) -> str:
    """What opens, class by class, and with which versions of libraries."""
    counts = count(rows)
    closed = [row for row in rows if row.verdict in ("refused", "not built", "wrong")]
    return PAGE.format(
        versions=versions,
        heads=" | ".join(VERDICTS),
        lines="---|" * len(VERDICTS),
        families=len({row.kind for row in rows}),
        classes=len(rows),
        counts=" | ".join(str(counts[verdict]) for verdict in VERDICTS),
        share=share(rows),
        closed="\n".join(_grouped((describe(row), f"`{row.head}`") for row in closed)),
        table="\n".join(_line(row) for row in rows),
    )


def _line(row: Row) -> str:
    note = row.note if row.verdict in OPENED else ""
    cells = (f"`{row.kind}`", f"`{row.head}`", row.verdict, named(row.sites), against(row), note)
    return f"| {' | '.join(cells)} |"


def _grouped(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """One line for each reason, with those whom it concerns; the most frequent reason first."""
    groups: dict[str, list[str]] = {}
    for reason, who in pairs:
        groups.setdefault(reason, []).append(who)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [f"- {reason} ({len(who)}: {', '.join(dict.fromkeys(who))})" for reason, who in ordered]


def methods_page(tried: Sequence[Tried]) -> str:
    """Which method runs on which family."""
    asked = [each for each in tried if each.row.verdict in OPENED]
    methods = list(
        dict.fromkeys(name for each in asked for name in each.cells or {} if name != "all")
    )
    raw = [
        (cell, f"{each.row.head}, {name}")
        for each in asked
        for name, cell in (each.cells or {}).items()
        if cell.startswith(RAW)
    ]
    by_family: dict[str, list[Tried]] = {}
    for each in asked:
        by_family.setdefault(each.row.kind, []).append(each)
    return METHODS_PAGE.format(
        classes=len(asked),
        families=len(by_family),
        raw=len(raw),
        cells=sum(len(each.cells or {}) for each in asked),
        broken=":\n\n" + "\n".join(_grouped(raw)) if raw else "",
        shares="\n".join(_share_of(name, asked) for name in methods),
        reasons="\n".join(_reasons(name, asked) for name in methods),
        methods=" | ".join(f"`{name}`" for name in methods),
        lines="---|" * len(methods),
        table="\n".join(_family(name, each, methods) for name, each in by_family.items()),
    )


def _share_of(method: str, tried: Sequence[Tried]) -> str:
    found = Counter(_kind(each, method) for each in tried)
    defined = found.total() - found[UNDEFINED]
    parts = [found[RAN] / max(1, total) for total in (found.total(), defined)]
    counts = [str(found[kind]) for kind in (RAN, REFUSED, UNDEFINED, LONG, RAW)]
    return f"| `{method}` | {' | '.join(counts)} | {parts[0]:.1%} | {parts[1]:.1%} |"


def _reasons(method: str, tried: Sequence[Tried]) -> str:
    found = [
        (_reason((each.cells or {})[method], each.row.head), f"`{each.row.head}`")
        for each in tried
        if _kind(each, method) in (REFUSED, UNDEFINED, LONG)
    ]
    return f"### {method}\n\n" + ("\n".join(_grouped(found)) or "Never.") + "\n"


def _reason(cell: str, head: str) -> str:
    """Why a method was refused, in the same words for all classes."""
    kind, why = cell.split(": ", 1)
    said = why.replace(head, "the model")
    return said if kind == REFUSED else f"**{kind}**: {said}"


def _family(name: str, tried: Sequence[Tried], methods: Sequence[str]) -> str:
    cells = []
    for method in methods:
        found = Counter(_kind(each, method) for each in tried)
        alike = next((SIGNS[kind] for kind in SIGNS if found[kind] == len(tried)), None)
        cells.append(alike or f"{found[RAN]}" + (f" ({found[RAW]} ✗)" if found[RAW] else ""))
    return f"| `{name}` | {len(tried)} | {' | '.join(cells)} |"


def _kind(tried: Tried, method: str) -> str:
    """Whether a method ran, was refused or broke; what broke before any method broke them all."""
    return (tried.cells or {}).get(method, RAW).split(":")[0]
