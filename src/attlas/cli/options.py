"""Options that commands share, in groups, each with what is done with them.

A command takes a group as one parameter; `spread` shows typer an option for each of its fields.
"""

import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.catalogue import BEST_METHODS, known_options
from attlas.cli.groups.inputs import read_image, read_messages, read_sound, read_stdin
from attlas.cli.output import print_json, print_plan, print_result, quiet_libraries
from attlas.errors import UnknownNameError, UsageError, refuse_address
from attlas.progress import watched

Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="The model: a built-in name, a folder, a GGUF file or a hub id."
    ),
]
Target = Annotated[
    str | None, typer.Option(help="What to explain: a label, a class number or a token.")
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or mps; chosen if not given.")]
Truncate = Annotated[bool, typer.Option("--truncate", help="Cut texts that are too long.")]
Steps = Annotated[int, typer.Option(help="Steps of the integral of attattr.")]
OldCount = Annotated[int | None, typer.Option("--texts", hidden=True)]  # renamed to --count
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Estimate time and memory, and stop.")]


@dataclass(frozen=True)
class LoadOptions:
    """How a model is loaded: the same options in every command that loads one."""

    task: Annotated[
        str | None, typer.Option(help="The model's task, if it cannot be inferred.")
    ] = None
    device: Device = None
    dtype: Annotated[str | None, typer.Option(help="float32, float16, bfloat16 or float64.")] = None
    attn_implementation: Annotated[
        str | None,
        typer.Option(help="sdpa, or eager for the few models that are refused on it."),
    ] = None
    device_map: Annotated[
        str | None, typer.Option(help="auto: over all GPUs, then the host, then the disk; or JSON.")
    ] = None
    max_memory: Annotated[
        list[str] | None, typer.Option(help="0=20GB, cpu=60GB: the most for a device; repeatable.")
    ] = None
    offload_folder: Annotated[
        Path | None, typer.Option(help="Where weights go that fit nowhere else.")
    ] = None
    quantization: Annotated[str | None, typer.Option(help="int8 or int4.")] = None
    unsafe_weights: Annotated[
        bool, typer.Option("--unsafe-weights", help="Allow pickled weights.")
    ] = False
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
    ] = False

    def check(self, model: str) -> None:
        """Refuse a model that is not there, and ways to load it that there are not."""
        from attlas.models.facts.places import check_loading
        from attlas.models.loading.placement import check_placement

        placed = self._placed()
        check_placement(
            self.device,
            **placed,
            quantization=self.quantization,
            offload_folder=self.offload_folder,
        )
        check_loading(model, self.task, self.device, self.dtype, self.attn_implementation)

    def load(self, model: str) -> Any:
        """Load a model; one that is not there is told before anything heavy is imported."""
        self.check(model)
        with watched(None, f"loading {model}"):
            quiet_libraries()
            from attlas.models.load import load

            asked = {**asdict(self), **self._placed()}
            return load(model, quantization_config=asked.pop("quantization"), **asked)

    def _placed(self) -> dict[str, Any]:
        """Which weights go where, as `load` takes it."""
        limits = [each.partition("=") for each in self.max_memory or ()]
        for name, equals, size in limits:
            if not (name and equals and size):
                raise UsageError(
                    f"--max-memory is written device=size, not {name + equals + size!r}"
                )
        given = self.device_map
        if given is not None and given.startswith("{"):
            given = _read_map(given)
        return {"device_map": given, "max_memory": {name: size for name, _, size in limits} or None}


@dataclass(frozen=True)
class DataOptions:
    """Which data are read: the arguments of `read_examples`."""

    data: Annotated[
        str,
        typer.Option(
            help="A name (reviews, sst2, …), a file (csv, tsv, json, jsonl, parquet) or a hub set."
        ),
    ] = "reviews"
    text: Annotated[str | None, typer.Option(help="The column of the text.")] = None
    pair: Annotated[str | None, typer.Option(help="The column of a second text.")] = None
    label: Annotated[str | None, typer.Option(help="The column of the label.")] = None
    spans: Annotated[str | None, typer.Option(help="The column of the marked words.")] = None
    split: Annotated[str | None, typer.Option(help="The split; test if not given.")] = None
    count: Annotated[int | None, typer.Option(help="How many texts to draw, by the seed.")] = None

    def check(self) -> None:
        """Refuse data that are not there, or columns that they do not have."""
        from attlas.data.read_examples import check_data

        asked = asdict(self)
        del asked["count"]
        check_data(asked.pop("data"), **asked)

    def read(self, seed: int, count: int | None = None) -> Any:
        """Read the data, drawing `count` texts if the user did not say how many."""
        from attlas.data import read_examples

        asked = asdict(self)
        asked["count"] = count if self.count is None else self.count
        return read_examples(asked.pop("data"), seed=seed, **asked)


@dataclass(frozen=True)
class InputOptions:
    """One input to explain: a text, a pair of texts, pictures with or without one, or a chat."""

    text: Annotated[str, typer.Argument(help="The text, or - to read it from standard input.")] = ""
    pair: Annotated[
        str | None,
        typer.Option(help="A second text, or the context of a question; with --data its column."),
    ] = None
    image: Annotated[
        list[Path] | None, typer.Option(help="A picture instead of a text or with one; repeatable.")
    ] = None
    audio: Annotated[Path | None, typer.Option(help="A WAV file instead of a text.")] = None
    messages: Annotated[
        str | None,
        typer.Option(help="A chat: a JSON file of messages, with tools or not; - reads stdin."),
    ] = None

    def read(self) -> Any:
        """Read the input."""
        if self.messages is not None:
            if self.text or self.pair is not None or self.image:
                raise UsageError("--messages is the whole input: it takes no text, pair or picture")
            return read_messages(self.messages)
        if self.audio is not None:
            return read_sound(self.audio)
        pictures = [read_image(path) for path in self.image or ()]
        if len(pictures) == 1 and not self.text:
            return pictures[0]
        first = read_stdin() if self.text == "-" else self.text
        if not first.strip():
            raise UsageError("the text is empty: give one in quotes, or - to read standard input")
        if pictures:
            return (*pictures, first)
        return first if self.pair is None else (first, self.pair)


@dataclass(frozen=True)
class OutputOptions:
    """Where a result goes: to a page, to a file, and to the terminal as text or JSON."""

    html: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None
    save: Annotated[Path | None, typer.Option(help="Save the result to a file.")] = None
    as_json: AsJson = False
    dry_run: DryRun = False

    def check(self) -> None:
        """Refuse a file in a folder that is not there, before any work is done."""
        for path in filter(None, (self.html, self.save)):
            refuse_address(path)
            if not Path(os.path.expanduser(path)).parent.is_dir():
                raise UsageError(f"{path} cannot be written: the folder {path.parent} is not there")

    def plan(self, verb: Callable[..., Any], *given: Any, **named: Any) -> None:
        """Print what a verb would take with these arguments."""
        from attlas.planning import plan

        print_plan(plan(verb, *given, **named), self.as_json)

    def show(
        self, result: Any, *, tokens: bool = False, drawn: Sequence[Path] = (), last: str = ""
    ) -> None:
        """Write and print a result, and a last line.

        `drawn` are files that the command has written already.
        """
        if self.html is not None:
            result.to_html(self.html)
        if self.save is not None:
            result.save(self.save)
        if self.as_json:
            print_json(result.to_dict())
        else:
            written = [path for path in (self.html, *drawn, self.save) if path]
            print_result(result, {"words": None} if tokens else {}, written, last)


def _read_map(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as problem:
        raise UsageError(f"--device-map is a word or JSON: {problem}") from problem


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each group in the signature of a command by its fields, as typer needs it."""
    signature = inspect.signature(command)
    groups: dict[str, Any] = {
        name: each.annotation
        for name, each in signature.parameters.items()
        if is_dataclass(each.annotation)
    }
    options = [option for each in signature.parameters.values() for option in _options(each)]

    @wraps(command)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{each.name: given.pop(each.name) for each in fields(group)})
        command(**given)

    call.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in options}
    return call


def _options(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    if not is_dataclass(parameter.annotation):
        yield parameter
        return
    for each in fields(parameter.annotation):
        yield inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type
        )


def parse_options(given: Sequence[str], known: Mapping[str, Any], owner: str) -> dict[str, Any]:
    """Parse `name=value` pairs; a value is JSON if it can be read as such, else a string."""
    options: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"an option is written name=value, not {each!r}")
        if name not in known:
            raise UnknownNameError(f"option of {owner}", name, known)
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    return options


def options_of_each(named: Sequence[str | None], given: Sequence[str]) -> list[dict[str, Any]]:
    """The options of each method; of several, each takes those that it knows."""
    names = [name or BEST_METHODS[0] for name in named]
    known = [_known_options(name) for name in names]
    options: list[dict[str, Any]] = [{} for _ in names]
    for each in given:
        takers = [i for i, own in enumerate(known) if each.partition("=")[0] in own]
        for i in takers or [0]:  # one that nobody knows is refused in the name of the first
            options[i] |= parse_options([each], known[i], names[i])
    return options


def _known_options(method: str) -> Mapping[str, Any]:
    known = known_options("method", method)
    if known is None:
        from attlas.methods import METHODS

        known = METHODS[method].options
    return known
