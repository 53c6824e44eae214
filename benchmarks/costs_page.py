"""The tables and plots of docs/performance.md on what each method costs, and on offload.

    python benchmarks/costs_page.py [FILE...]

Rows of FILE, which costs.py or offloading.py wrote elsewhere, go into `benchmarks/costs.json` and
`benchmarks/offloading.json`, each in the place of its like; then the parts of the page between
their markers are made anew, and the plots `docs/images/costs_<device>.svg`.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path

import numpy as np
from rows import Record, put, read

ROOT = Path(__file__).parent.parent
COSTS, OFFLOADED = (ROOT / "benchmarks" / f"{name}.json" for name in ("costs", "offloading"))
PAGE, IMAGES = ROOT / "docs" / "performance.md", ROOT / "docs" / "images"
PLACES = {"cuda": "a GPU", "cpu": "a processor"}
DEVICES = tuple(PLACES)
SCRIPTS = {"costs": "costs", "offload": "offloading"}
MOST = 0.75  # of the methods: a cell that fewer have is not in the table
SHADES = ("#9ecae1", "#3182bd", "#08306b")
COST, OFFLOAD = ("device", "method", "layers", "tokens"), ("device", "way", "method")


def main() -> None:
    for name in sys.argv[1:]:
        rows = read(Path(name))
        put(*((OFFLOADED, rows, OFFLOAD) if "way" in rows[0] else (COSTS, rows, COST)))
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(text, read(COSTS), read(OFFLOADED)), encoding="utf-8")
    for device in DEVICES:
        own = [each for each in read(COSTS) if each["device"] == device]
        if own:
            draw(own, IMAGES / f"costs_{device}.svg")


def page(text: str, costs: Sequence[Record], offloaded: Sequence[Record]) -> str:
    """The page with its parts made anew."""
    for device in DEVICES:
        for name, rows in (("costs", costs), ("offload", offloaded)):
            own = [each for each in rows if each["device"] == device]
            text = filled(text, f"{name} {device}", part(name, device, own))
    return text


def part(name: str, device: str, rows: Sequence[Record]) -> list[str]:
    """What was measured on a device, or with what it is measured."""
    if not rows:
        script = f"python benchmarks/{SCRIPTS[name]}.py --device {device}"
        return [f"On {PLACES[device]}, this is not measured yet: `{script}`."]
    if name == "offload":
        return [*off_lines(rows), "", measured_on(rows)]
    shown = f"![What each method costs, {device}](images/costs_{device}.svg)"
    return [*cost_lines(rows), "", measured_on(rows), "", shown]


def filled(text: str, name: str, lines: Sequence[str]) -> str:
    pattern = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
    return re.sub(
        pattern, lambda found: found[1] + "\n".join(lines) + "\n" + found[2], text, flags=re.S
    )


def measured_on(rows: Sequence[Record]) -> str:
    """Where and when; a line for each call that made some of the rows."""
    told = []
    for each in rows:
        versions = ", ".join(f"{name} {version}" for name, version in each["versions"].items())
        told.append(f"{each['machine']}, {versions}, {each['date']}, load {each['load']}.")
    return "  \n".join(dict.fromkeys(told))


def cost_lines(rows: Sequence[Record]) -> Iterator[str]:
    """A row for each method: some cells, and how time and memory grow."""
    corners = cells(rows)
    heads = [f"{layers} layers, {tokens} tokens" for layers, tokens in corners]
    yield f"| method | {' | '.join(heads)} | time by tokens | by layers | memory by tokens |"
    yield "|---" * (len(heads) + 4) + "|"
    for name in sorted({each["method"] for each in rows}):
        own = [each for each in rows if each["method"] == name]
        known = {(each["layers"], each["tokens"]): each for each in own}
        shown = [taken(known.get(corner)) for corner in corners]
        grown = [power(own, *each) for each in GROWTHS]
        yield f"| `{name}` | {' | '.join([*shown, *grown])} |"


GROWTHS = (
    ("tokens", "layers", "seconds"),
    ("layers", "tokens", "seconds"),
    ("tokens", "layers", "megabytes"),
)


def cells(rows: Sequence[Record]) -> list[tuple[int, int]]:
    """The smallest cell, and the longest and the deepest that most methods have."""
    methods = {each["method"] for each in rows}
    count = Counter((each["layers"], each["tokens"]) for each in rows)
    common = [cell for cell, each in count.items() if each >= MOST * len(methods)]
    layers, tokens = min(each for each, _ in common), min(each for _, each in common)
    longest = max(each for depth, each in common if depth == layers)
    deepest = max(depth for depth, each in common if each == tokens)
    found = [(layers, tokens), (layers, longest), (deepest, tokens), max(common, key=prod)]
    return list(dict.fromkeys(found))


def taken(row: Record | None) -> str:
    if row is None:
        return "–"
    if row["seconds"] is None:
        return "refused"
    seconds = row["seconds"]
    said = f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
    return f"{said}, {max(row['megabytes'], 0):,.0f} MB"


def power(rows: Sequence[Record], by: str, fixed: str, what: str) -> str:
    """The exponent of growth, fitted where most sizes were measured."""
    tracks = [
        [(each[by], each[what]) for each in rows if each[fixed] == value and (each[what] or 0) > 0]
        for value in sorted({each[fixed] for each in rows})
    ]
    longest = max(tracks, key=len)
    if len(longest) < 2:
        return ""
    sizes, values = np.log(np.array(longest, dtype=float)).T
    return f"{np.polyfit(sizes, values, 1)[0]:.1f}"


def off_lines(rows: Sequence[Record]) -> Iterator[str]:
    sizes = {(each["layers"], round(each["model_megabytes"])) for each in rows}
    for layers, megabytes in sorted(sizes):
        own = [each for each in rows if each["layers"] == layers]
        yield f"{layers} layers, {megabytes:,} MB of weights.\n"
        yield from off_table(own)


def off_table(rows: Sequence[Record]) -> Iterator[str]:
    """A line for each method and way."""
    yield "| method | way | whole | so | differs by |"
    yield "|---|---|---|---|---|"
    for each in rows:
        whole = taken({"seconds": each["whole_seconds"], "megabytes": each["whole_megabytes"]})
        if "seconds" not in each:
            yield f"| `{each['method']}` | {each['way']} | {whole} | {each['note']} | |"
            continue
        apart = f"{each['difference']:.1e}"
        yield f"| `{each['method']}` | {each['way']} | {whole} | {taken(each)} | {apart} |"


def draw(rows: Sequence[Record], path: Path) -> None:
    """Seconds and megabytes of each method at the middle depth, a dot for each length."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "attlas", "svg.fonttype": "none"})

    depths = sorted({each["layers"] for each in rows})
    depth = depths[len(depths) // 2]
    own = [each for each in rows if each["layers"] == depth and each["seconds"] is not None]
    lengths = sorted({each["tokens"] for each in own})
    slowest = {
        name: max(each["seconds"] for each in own if each["method"] == name)
        for name in {e["method"] for e in own}
    }
    names = sorted(slowest, key=slowest.__getitem__)
    figure, axes = pyplot.subplots(
        1, 2, figsize=(8, 0.24 * len(names) + 1.2), sharey=True, layout="constrained"
    )
    for axis, what, least in zip(axes, ("seconds", "megabytes"), (1e-4, 0.1), strict=True):
        for number, name in enumerate(names):
            found = sorted((e["tokens"], max(e[what], least)) for e in own if e["method"] == name)
            values = [value for _, value in found]
            axis.plot(values, [number] * len(values), color="#bbbbbb", linewidth=1, zorder=1)
            shades = [SHADES[lengths.index(tokens) % len(SHADES)] for tokens, _ in found]
            axis.scatter(values, [number] * len(values), c=shades, s=22, zorder=2)
        axis.set_xscale("log")
        axis.set_xlabel(what)
        axis.grid(axis="x", color="#eeeeee")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(names)), names, fontsize=8)
    marks = [
        pyplot.Line2D([], [], marker="o", linestyle="", color=SHADES[i % 3])
        for i in range(len(lengths))
    ]
    figure.legend(
        marks,
        [f"{each} tokens" for each in lengths],
        loc="outside upper right",
        ncols=3,
        frameon=False,
        fontsize=8,
    )
    figure.suptitle(f"{depth} layers", x=0.01, ha="left", fontsize=9)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
