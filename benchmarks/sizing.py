"""The tables of docs/cluster.md: what workers on Ray add, and what a cluster costs.

    python benchmarks/sizing.py --price 4 [FILE]

Rows of FILE, which ray_throughput.py wrote elsewhere, go into `benchmarks/ray.json` in the place of
those of the same kind and device. Then the tables of the page are made anew, between their markers:
from these rows, and from the comparison `many_texts` of `benchmarks/results.json`. `--price` is in
dollars for an hour of one GPU; look up that of your own.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rows import Record as Row
from rows import read, write

from attlas.progress import duration

ROOT = Path(__file__).parent.parent
ROWS, RESULTS = ROOT / "benchmarks" / "ray.json", ROOT / "benchmarks" / "results.json"
PAGE = ROOT / "docs" / "cluster.md"
TEXTS = (10_000, 1_000_000, 100_000_000)
SENTENCES = re.compile(r"`(\w+)` of (\d+) sentences")
PLACES = {"cuda": "a GPU", "cpu": "a processor"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("new", type=Path, nargs="?")
    parser.add_argument("--price", type=float, required=True)
    given = parser.parse_args()
    rows = read(ROWS)
    if given.new is not None:
        rows = merged(rows, read(given.new))
        write(ROWS, rows)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows, given.price), encoding="utf-8")


def merged(known: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """All rows; new ones replace those of the same kind and device."""
    replaced = {(each["what"], each["device"]) for each in new}
    kept = [each for each in known if (each["what"], each["device"]) not in replaced]
    return sorted([*kept, *new], key=lambda each: (each["what"], each["device"]))


def page(text: str, rows: Sequence[Row], price: float) -> str:
    """The page with its tables made anew."""
    text = _put(text, "workers", workers(rows))
    return _put(text, "sizing", sizing([*of_sentences(read(RESULTS)), *rows], price))


def _put(text: str, name: str, lines: Iterator[str]) -> str:
    start, end = f"<!-- table: {name} -->", "<!-- end of table -->"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    table = "\n".join(lines)
    assert pattern.search(text), f"no place for {name}"
    return pattern.sub(lambda _: f"{start}\n{table}\n{end}", text, count=1)


def workers(rows: Sequence[Row]) -> Iterator[str]:
    """How much more several workers explain than one."""
    own = [each for each in rows if each["what"] == "workers"]
    if own:
        yield "| machine | model, method | workers | texts a second | against one |"
        yield "|---|---|---|---|---|"
    one = {(each["device"], each["machine"]): each["rate"] for each in own if each["workers"] == 1}
    for each in own:
        first = one[each["device"], each["machine"]]
        where = f"{each['machine']}{', shared' if each['device'] == 'cuda' else ''}"
        where += ", without Ray" if each.get("engine") == "local" else ""
        yield (
            f"| {where} | {each['model']}, `{each['method']}` | {each['workers']} | "
            f"{each['rate']:,.0f} | {each['rate'] / first:.2f} × |"
        )
    yield from _measured(own)


def _measured(rows: Sequence[Row]) -> Iterator[str]:
    """When workers were measured, and on what they are not measured yet."""
    told = [_facts(each) for each in rows if "load" in each]
    missing = [PLACES[each] for each in PLACES if each not in {row["device"] for row in rows}]
    told += [f"On {each}, this is not measured yet." for each in missing]
    if rows and told:
        yield ""
    yield from dict.fromkeys(told)


def _facts(row: Row) -> str:
    versions = ", ".join(f"{name} {each}" for name, each in row["versions"].items())
    busy = row["device"] == "cpu" and row["load"] > row["cores"] / 2
    others = ", from other work: the workers had no core each, and this says little" if busy else ""
    return (
        f"On {row['machine']}: `{row['asked']}`, {versions}, {row['date']}, load of the machine "
        f"before it {row['load']:g}{others}."
    )


def of_sentences(records: Sequence[Row]) -> Iterator[Row]:
    """The rates of a comparison that was run on a GPU anyway."""
    for each in records:
        found = SENTENCES.match(each["name"])
        if found and each["comparison"] == "many_texts" and each["device"] == "cuda":
            yield {
                **{"what": "rate", "device": "cuda", "machine": each["machine"]},
                **{"kind": "encoder", "millions": 109, "dtype": "float32", "method": found[1]},
                **{"tokens": "4 to 54", "rate": int(found[2]) / each["ours"]},
            }


def sizing(rows: Sequence[Row], price: float) -> Iterator[str]:
    """Time and money for so many texts, on one GPU."""
    own = [each for each in rows if each["what"] == "rate" and each["device"] == "cuda"]
    if not own:
        yield "On a GPU, this is not measured yet."
        return
    counts = " | ".join(f"{count:,} texts" for count in TEXTS)
    yield f"| model | tokens | method | texts a second | {counts} |"
    yield "|---" * (4 + len(TEXTS)) + "|"
    for each in own:
        model = f"{each['kind']}, {each['millions']:,} M, {each['dtype']}"
        cost = " | ".join(_cost(count / each["rate"], price) for count in TEXTS)
        rate = f"{each['rate']:,.{0 if each['rate'] >= 10 else 2}f}"
        yield f"| {model} | {each['tokens']} | `{each['method']}` | {rate} | {cost} |"
    machines = ", ".join(dict.fromkeys(str(each["machine"]) for each in own))
    yield ""
    yield f"On {machines}, at {price:g} dollars an hour."


def _cost(seconds: float, price: float) -> str:
    dollars = seconds / 3600 * price
    took = duration(seconds) if seconds < 48 * 3600 else f"{seconds / 86400:,.0f} days"
    return f"{took}, ${dollars:,.2f}" if dollars < 10 else f"{took}, ${dollars:,.0f}"


if __name__ == "__main__":
    main()
