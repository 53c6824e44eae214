"""What `attlas.plan` says a call will take, beside what the call took.

    python benchmarks/estimates.py [--device cuda] [--small] [--out FILE]

One text of each length, a model in the shape of BERT-base, each method once after a call to warm
up. Memory is what the call had in use beyond the weights and what was there before: by torch's
allocator on a GPU, in the process on a CPU, where a small call finds memory that was used before.
The table is Markdown; FILE gets the rows as JSON.
"""

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rows import put

METHODS = (
    *("raw_attention", "attention_rollout", "gradient_attention", "generic_relevance"),
    *(
        "gradient",
        "attn_lrp",
        "integrated_gradients",
        "leave_one_out",
        "attattr",
        "globenc",
        "decompx",
    ),
)
TIMES = 3  # an estimate of memory within this factor is called near


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    print("| method | tokens | planned memory | used | planned time | taken | memory is near |")
    print("|---|---|---|---|---|---|---|")
    for row in measured(given.device, given.small):
        print(
            f"| `{row['method']}` | {row['tokens']} | {row['planned_mb']:.0f} MB | "
            f"{row['used_mb']:.0f} MB | {planned_time(row)} | "
            f"{1000 * row['taken_s']:.0f} ms | {'yes' if row['near'] else '**no**'} |",
            flush=True,
        )
        if given.out:
            put(given.out, [row], ("method", "tokens"))
    return 0


def planned_time(row: dict[str, Any]) -> str:
    """The usual time, and the most, where that depends on the text."""
    usual, most = (1000 * row[name] for name in ("planned_s", "planned_most_s"))
    return f"{usual:.0f} ms" if most <= usual else f"{usual:.0f}, up to {most:.0f} ms"


def measured(device: str, small: bool) -> Iterator[dict[str, Any]]:
    from comparing import MEGABYTE, Setup
    from shapes import bert, texts_of

    import attlas

    setup = Setup(device, small)
    subject = bert(device, layers=setup.size(12, 2))
    for tokens in setup.size((128, 512), (16,)):
        (text,) = texts_of(subject, [tokens])
        for method in METHODS:
            plan = attlas.plan(attlas.explain, subject, text, method)
            work = partial(attlas.explain, subject, text, method)
            work()
            taken, used = setup.peak(work)
            planned = plan.peak / MEGABYTE
            yield {
                "method": method,
                "tokens": tokens,
                "planned_mb": planned,
                "used_mb": used,
                "planned_s": plan.seconds,
                "planned_most_s": plan.most_seconds,
                "taken_s": taken,
                "near": used <= TIMES * planned and planned <= TIMES * max(used, 1.0),
            }


if __name__ == "__main__":
    sys.exit(main())
