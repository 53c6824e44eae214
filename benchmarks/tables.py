"""The rows of benchmarks/run.py as tables, and the tables of docs/performance.md.

    python benchmarks/tables.py [FILE...]

Rows of FILE, which run.py wrote elsewhere, go into `benchmarks/results.json`; then the tables of
the page are made anew, between their markers.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rows import Record, read, write

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "performance.md"
DEVICES = ("cuda", "cpu")


def merged(known: Sequence[Record], new: Sequence[Record]) -> list[Record]:
    """All rows; new ones replace those of the same comparison, device and size.

    Where the comparison had not ended, a row replaces its like alone.
    """
    ended = {_place(each) for each in new if each.get("ended", True)}
    alike = {_like(each) for each in new}
    kept = [each for each in known if _place(each) not in ended and _like(each) not in alike]
    return sorted([*kept, *new], key=_place)  # rows of one comparison stay in their order


def _place(record: Record) -> tuple[str, str, bool]:
    return record["device"], record["comparison"], record["small"]


def _like(record: Record) -> tuple[object, ...]:
    return *_place(record), record["name"], record["against"]


def shown(records: Sequence[Record], device: str) -> list[Record]:
    """The rows of a device; small ones only where there are no others."""
    own = [each for each in records if each["device"] == device]
    full = {each["comparison"] for each in own if not each["small"]}
    return [each for each in own if not each["small"] or each["comparison"] not in full]


def markdown(records: Iterable[Record]) -> Iterator[str]:
    """A table, one line for each row."""
    yield "| what | against | ours | peer | the call | inside | differs by | goal |"
    yield "|---|---|---|---|---|---|---|---|"
    for each in records:
        note = f"; {each['note']}" if each["note"] else ""
        cells = [
            each["name"],
            f"{each['against']}{note}",
            _taken(each["ours"], each["megabytes"]),
            _taken(each["peer"], each["peer_megabytes"]),
            _ratio(each["ours"], each["peer"]),
            _ratio(each["inner"], each["peer"]) if each["inner"] else "",
            _difference(each),
            _goal(each),
        ]
        yield f"| {' | '.join(cells)} |"


def _taken(seconds: float | None, megabytes: float | None) -> str:
    if seconds is None:
        return "did not end"
    taken = f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
    return taken if megabytes is None else f"{taken}, {megabytes:,.0f} MB"


def _ratio(ours: float | None, peer: float) -> str:
    if ours is None:
        return "–"
    return f"{peer / ours:.2g} × as fast" if peer >= ours else f"takes {ours / peer:.3g} ×"


def _difference(record: Record) -> str:
    if record["difference"] is None:
        return ""
    return f"{record['difference']:.1e} {record['unit']}".strip()


def _goal(record: Record) -> str:
    if record["goal"] is None:
        return ""
    factor, seconds = record["goal"]
    goal = f"at most {factor:g} ×" if factor >= 1 else f"{1 / factor:g} × as fast"
    goal += f" + {seconds * 1e3:g} ms" if seconds else ""
    if record["goal_megabytes"] is not None:
        goal += f", {record['goal_megabytes']:,.0f} MB"
    return f"{goal}: {'reached' if record['reached'] else '**not reached**'}"


def section(records: Sequence[Record], device: str) -> Iterator[str]:
    """What the page says of a device: its table, and where the rows are from."""
    rows = shown(records, device)
    if not rows:
        yield "Nothing is measured yet."
        return
    yield from markdown(rows)
    yield ""
    origins: dict[str, list[str]] = {}
    loads: dict[str, float] = {}
    for each in rows:
        versions = ", ".join(f"{name} {number}" for name, number in each["versions"].items())
        size = ", `--small`" if each["small"] else ""
        origin = f"{each['machine']}, {versions}, {each['date']}{size}"
        loads[origin] = max(loads.get(origin, 0.0), each["load"])
        if each["comparison"] not in origins.setdefault(origin, []):
            origins[origin].append(each["comparison"])
    for origin, names in origins.items():
        told = ", ".join(f"`{name}`" for name in names)
        yield f"{told}: {origin}, load of the machine up to {loads[origin]:g}."


def page(text: str, records: Sequence[Record]) -> str:
    """The page with its tables made anew."""
    for device in DEVICES:
        start, end = f"<!-- table: {device} -->", "<!-- end of table -->"
        made = "\n".join([start, *section(records, device), end])
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        text = pattern.sub(lambda _, made=made: made, text, count=1)
    return text


def main(paths: Sequence[str]) -> None:
    records = read(RESULTS)
    for path in paths:
        records = merged(records, read(Path(path)))
    write(RESULTS, records)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), records), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
