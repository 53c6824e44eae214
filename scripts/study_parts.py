#!/usr/bin/env python3
"""Keep what studies computed in docs/studies/parts, and go on from it on any machine.

scripts/study_parts.py keep FOLDER…   takes over the parts in the folders of studies
scripts/study_parts.py lay FOLDER     puts all kept parts there: studies with this --out go on

A file for each study holds a line of JSON for each part, and one for each record of a training
whose model a part names: with it, the study needs no weights to know what it was asked about.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attlas.studies.support.run import PARTS, as_json, file_of
from attlas.studies.support.several_models import TRAINING
from attlas.views.files import write_whole

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "studies" / "parts"
ENDING = ".jsonl.gz"
Records = dict[str, Mapping[str, Any]]  # by where they lie in a folder


def keep(folder: Path) -> dict[str, int]:
    """Take over the parts in a folder, new ones for old; how many are kept of each study."""
    found = {}
    for study in sorted({each.name.split("-")[0] for each in folder.glob(f"{PARTS}/*.json")}):
        records = {**kept(study), **records_in(folder, study)}
        KEPT.mkdir(parents=True, exist_ok=True)
        (KEPT / f"{study}{ENDING}").write_bytes(packed(records))
        found[study] = sum("asked" in each for each in records.values())
    return found


def lay(folder: Path) -> int:
    """Put what is kept of all studies into a folder; what is there already stays."""
    count = 0
    for file in sorted(KEPT.glob(f"*{ENDING}")):
        for name, record in kept(file.name.removesuffix(ENDING)).items():
            place = folder / name
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                write_whole(place, as_json(record))
                count += 1
    return count


def kept(study: str) -> Records:
    """What is kept of a study."""
    file = KEPT / f"{study}{ENDING}"
    return unpacked(study, file.read_bytes()) if file.is_file() else {}


def records_in(folder: Path, study: str) -> Records:
    """The parts of a study in a folder, and the trainings of the models that they name."""
    found = {
        f"{PARTS}/{each.name}": json.loads(each.read_text("utf-8"))
        for each in folder.glob(f"{PARTS}/{study}-*.json")
    }
    told = {str(each["asked"]["part"]) for each in found.values()}
    for each in folder.rglob(TRAINING):
        record = json.loads(each.read_text("utf-8"))
        model = each.parent.relative_to(folder).as_posix()
        if any(f"{model} of weights {record.get('weights')}" in part for part in told):
            found[f"{model}/{TRAINING}"] = record
    return found


def packed(records: Records) -> bytes:
    """Lines of JSON in the order of their places, compressed; the same records, the same bytes."""
    lines = (as_json(_line(place, records[place])) for place in sorted(records))
    return gzip.compress("".join(f"{each}\n" for each in lines).encode(), 9, mtime=0)


def unpacked(study: str, content: bytes) -> Records:
    """The records of such lines; the place of a part is known by what it was asked for."""
    lines: Iterable[dict[str, Any]] = map(json.loads, gzip.decompress(content).splitlines())
    return {
        each["place"] if "place" in each else f"{PARTS}/{file_of(study, each['asked'])}": (
            each["training"] if "place" in each else each
        )
        for each in lines
    }


def _line(place: str, record: Mapping[str, Any]) -> Mapping[str, Any]:
    return record if "asked" in record else {"place": place, "training": record}


def main(arguments: list[str] | None = None) -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("keep", "lay"))
    parser.add_argument("folders", nargs="+", type=Path)
    given = parser.parse_args(arguments)
    for folder in given.folders:
        if given.what == "lay":
            print(f"{folder}: {lay(folder)} files")
            continue
        for study, count in keep(folder).items():
            print(f"{KEPT / study}{ENDING}: {count} parts")


if __name__ == "__main__":
    main()
