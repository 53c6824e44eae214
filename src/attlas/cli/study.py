"""The command `study`; the options of each study are those of its function."""

from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter, cleandoc
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.catalogue import PartFacts, catalogue, check_names, known_names
from attlas.cli.groups.engines import EngineOptions
from attlas.cli.options import AsJson, Device, DryRun
from attlas.cli.output import (
    print_json,
    print_line,
    print_plan,
    print_result,
    print_table,
    quiet_libraries,
)
from attlas.errors import UnknownNameError, UsageError
from attlas.progress import duration

HOW = {  # of this command in the app: what it does not know is an option of the study
    "context_settings": {"ignore_unknown_options": True},
    "add_help_option": False,
}
SHARED = {  # options that every study has
    "--quick": "A small subset, in seconds; marked as such.",
    "--out": "A folder for the page, the JSON, and finished parts to go on from.",
    "--device": "cpu, cuda, cuda:1 or mps; chosen if not given.",
    "--engine": "Who computes the parts: local, or ray for workers on a cluster.",
    "--address": "With --engine ray: a running cluster, host:port or auto.",
    "--workers": "With --engine ray: how many.",
    "--json": "Print JSON.",
    "--dry-run": "Estimate the time, and stop.",
}


def study(
    *,
    name: Annotated[str | None, typer.Argument(help="The study; see --list.")] = None,
    own: Annotated[list[str] | None, typer.Argument(help="Options of the study.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List all studies.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help=SHARED["--quick"])] = False,
    out: Annotated[Path | None, typer.Option(help=SHARED["--out"])] = None,
    device: Device = None,
    sharing: EngineOptions,
    as_json: AsJson = False,
    dry_run: DryRun = False,
    helped: Annotated[
        bool, typer.Option("--help", "-h", help="Show this, or the options of the study named.")
    ] = False,
) -> None:
    """Run a published experiment again: ours, published, difference, and a verdict on each claim.

    A study has options of its own: attlas study NAME --help shows them. Data sets are read from the
    folder that ATTLAS_DATA names. What is finished in the folder --out is not run again.

    Example: attlas study poster --quick

    Example: attlas study poster --data sst2 --seeds 3 --out found --device cuda
    """
    if listed:
        _print_list(as_json)
        return
    if name is None or name.startswith("-"):
        if not helped:
            raise UsageError("name a study first: attlas study NAME; --list lists them")
        _print_help()
        return
    check_names("study", [name])
    known = _facts(name)
    if helped:
        _print_options(known)
        return
    options = parse_extras(own or (), known.options, known.name)
    engine = sharing.chosen()
    quiet_libraries()
    from attlas.studies import study as run_study

    given = {"quick": quick, "out": out, "device": device, "engine": engine, **options}
    if dry_run:
        from attlas.planning import plan

        print_plan(plan(run_study, name, **given), as_json)
        return
    result = run_study(name, **given)
    if as_json:
        print_json(result.to_dict())
        return
    page = [] if out is None else [out / f"{result.name}.html"]
    last = "" if out else "Nothing was written: --out FOLDER keeps the page and the numbers"
    print_result(result, {}, page, last)


def parse_extras(words: Sequence[str], known: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """The options of a study from the words that the command itself does not know.

    A value has the type of the default; an option whose default is a tuple may be repeated, and its
    values may be joined by commas.
    """
    options: dict[str, Any] = {}
    for word, value in _pairs(words):
        name = word.removeprefix("--").replace("-", "_")
        if not word.startswith("--") or name not in known:
            shown = [f"--{each.replace('_', '-')}" for each in known]
            raise UnknownNameError(f"option of {owner}", word, [*shown, *SHARED])
        read = _value(word, value, known[name])
        options[name] = (*options.get(name, ()), *read) if isinstance(read, tuple) else read
    return options


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each option with its value; None if no value follows."""
    left = [part for word in words for part in _halves(word)]
    while left:
        word = left.pop(0)
        yield word, left.pop(0) if left and not left[0].startswith("--") else None


def _halves(word: str) -> list[str]:
    """`--name=value` as two words."""
    name, equals, value = word.partition("=")
    return [name, value] if equals and name.startswith("--") else [word]


def _value(word: str, value: str | None, default: Any) -> Any:
    if value is None:
        if default is False:
            return True
        raise UsageError(f"{word} needs a value")
    kinds = {int: "a whole number", float: "a number"}
    try:
        if isinstance(default, bool):
            return {"true": True, "false": False}[value.lower()]
        if isinstance(default, tuple):
            kind = type(default[0]) if default else str
            return tuple(kind(each) for each in value.split(","))
        if isinstance(default, (int, float)):
            return type(default)(value)
    except (ValueError, KeyError):
        wanted = kinds.get(
            type(default), "true or false" if isinstance(default, bool) else "a list"
        )
        raise UsageError(f"{word} takes {wanted}, not {value!r}") from None
    return int(value) if default is None and value.isdecimal() else value


def _facts(name: str) -> PartFacts:
    """What is known of a study: from its source, or for one of another package by importing it."""
    known = catalogue("study").get(name.replace("-", "_"))
    if known is not None:
        return known
    from attlas.studies import STUDIES

    chosen = STUDIES[name]
    record = {each: getattr(chosen, each) for each in ("about", "paper", "quick", "takes")}
    return PartFacts(chosen.name, record, chosen.options, chosen.about, {})


def _print_list(as_json: bool) -> None:
    studies = [_facts(name) for name in known_names("study")]
    if as_json:
        print_json([{"name": each.name, **each.record} for each in studies])
        return
    rows = []
    for each in studies:
        quick, full = each.record.get("takes", (0, 0))
        whole = duration(float(full)) if full else "not timed"
        took = f"quick {duration(float(quick))}, full {whole}"
        rows.append((each.name, each.record["paper"], took, each.record["about"]))
    print_table(rows)
    print_line(
        "\nTimes: quick on two cores, full on one H200. attlas study NAME --help: its options"
    )


def _print_help() -> None:
    print_line(f"Usage: attlas study NAME [OPTIONS]\n\n{cleandoc(study.__doc__ or '')}\n")
    print_table([("--list", "List all studies."), *SHARED.items()], indent=2)
    print_line(f"\nStudies: {', '.join(known_names('study'))}")


def _print_options(known: PartFacts) -> None:
    print_line(f"{known.name}: {known.summary}\n{known.record['paper']}\n")
    quick = known.record.get("quick", {})
    rows = []
    for name, default in known.options.items():
        usual = "needed" if default is Parameter.empty else f"default {default!r}"
        short = f"; quick {quick[name]!r}" if name in quick else ""
        told = f"{known.described.get(name, '')} [{usual}{short}]".strip()
        rows.append((f"--{name.replace('_', '-')}", told))
    print_table(rows, indent=2)
    print_line("\nand, for every study,")
    print_table(list(SHARED.items()), indent=2)
