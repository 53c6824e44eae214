#!/usr/bin/env python3
"""Put the study `better_attention` together from the parts that are there, and compute none.

scripts/better_attention_so_far.py FOLDER [--vectors wordllama]
"""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from time import monotonic

from attlas.studies import STUDIES
from attlas.studies.better.claims import Records
from attlas.studies.support.run import Run, result_of, write_result

NAME = "better_attention"


def put_together(folder: Path, vectors: str) -> int:
    """Write the result of the parts in a folder beside them, and say how many there are."""
    chosen, own = STUDIES[NAME], import_module(f"attlas.studies.{NAME}")
    settings = chosen.settings({"vectors": vectors}, quick=False)
    run = Run(NAME, settings, folder, None, lambda _: None)
    found, begun = Records(), monotonic()
    for job in own.jobs_of(settings["data"], settings["objectives"], settings["seeds"]):
        if run.is_kept(own.part_of(*job), own.APART):
            found.add(*job, own.do(run, *job))
    together = own.put_together(found)
    passed = monotonic() - begun
    write_result(result_of(chosen, run, together, quick=False, passed=passed), folder)
    return len(run.parts)


def main(arguments: list[str] | None = None) -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--vectors", default="wordllama", help="as they were named in the run")
    given = parser.parse_args(arguments)
    print(f"{put_together(given.folder, given.vectors)} parts")


if __name__ == "__main__":
    main()
