"""The command `explain`."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from shlex import quote
from typing import Annotated, Any

import typer

from attlas.catalogue import QUICK_METHODS
from attlas.cli.groups.compared import ComparedOptions
from attlas.cli.groups.engines import EngineOptions
from attlas.cli.options import InputOptions, LoadOptions, OutputOptions, Truncate, options_of_each
from attlas.cli.output import print_json, print_line, stoppable
from attlas.errors import UsageError
from attlas.progress import Step, watched


@dataclass(frozen=True)
class ScoreOptions:
    """Many texts, whose scores go to a file: which data are read, and where the scores go."""

    data: Annotated[
        str | None,
        typer.Option(help="Explain every text of a file (csv, jsonl, parquet, …) or a named set."),
    ] = None
    out: Annotated[
        str | None, typer.Option(help="With --data: the Parquet file for scores, or its address.")
    ] = None
    text_column: Annotated[
        str | None, typer.Option("--text", help="With --data: the column of the text.")
    ] = None
    label: Annotated[str | None, typer.Option(help="With --data: the column of the label.")] = None
    split: Annotated[
        str | None, typer.Option(help="With --data: the split; test if not given.")
    ] = None
    count: Annotated[
        int | None, typer.Option(help="With --data: how many texts to draw, by the seed.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="With --count: decides what is drawn.")] = None

    def check(self, inputs: InputOptions, output: OutputOptions, alone: Mapping[str, Any]) -> None:
        """Refuse what goes with one text `alone`, and data that are not there."""
        given = {"a text": inputs.text, "--html": output.html, "--save": output.save, **alone}
        given |= {f"--{name}": getattr(inputs, name) for name in ("image", "audio", "messages")}
        for option, value in given.items():
            if value:
                raise UsageError(f"--data explains many texts, so it does not go with {option}")
        if self.out is None:
            raise UsageError("--data needs --out, the file for the scores: --out scores.parquet")
        from attlas.data.read_examples import check_data

        columns = {"text": self.text_column, "pair": inputs.pair, "label": self.label}
        check_data(str(self.data), **columns, split=self.split)
        from attlas.explaining.score_places import check_out  # which brings torch with it

        check_out(self.out)

    def refuse_alone(self) -> None:
        """Refuse options that have no meaning without data."""
        for name, value in asdict(self).items():
            if value is not None:
                raise UsageError(f"--{name.removesuffix('_column')} needs --data")


def explain(
    *,
    inputs: InputOptions,
    scores: ScoreOptions,
    several: ComparedOptions,
    sharing: EngineOptions,
    contrast: Annotated[
        str | None, typer.Option(help="Explain why the target rather than this.")
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="What the decoder has written so far.")] = None,
    position: Annotated[
        str | None,
        typer.Option(help='Where the target is read: a token number, a word, or which: "was 2".'),
    ] = None,
    generate: Annotated[
        int | None,
        typer.Option(help="Let the model write up to this many tokens, and explain each."),
    ] = None,
    generated: Annotated[
        str | None,
        typer.Option("--output", help="With --generate: explain this text instead."),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="name=value, for the method; repeatable.")
    ] = None,
    chat: Annotated[bool, typer.Option("--chat", help="Apply the chat template.")] = False,
    maps: Annotated[
        bool | None,
        typer.Option("--maps/--no-maps", help="Keep the maps; only small ones if not given."),
    ] = None,
    licence: Annotated[
        bool,
        typer.Option(
            "--licence", help="Say whether the scores may be read as where the model looked."
        ),
    ] = False,
    tokens: Annotated[bool, typer.Option("--tokens", help="Show tokens, not words.")] = False,
    without_sinks: Annotated[
        bool,
        typer.Option("--without-sinks", help="Leave out a first token that takes most attention."),
    ] = False,
    truncate: Truncate = False,
    loading: LoadOptions,
    output: OutputOptions,
) -> None:
    """Explain a prediction: a score for each token.

    With --data and --out, every text of a file is explained; asked again, stopped work goes on.
    With several --method, --target or --model, or a text --beside, explanations are compared.

    Example: attlas explain --method attention_rollout "not a great film, but I could not look away"
    """
    method, model = several.named[0], several.model
    asked: dict[str, Any] = {
        "target": several.aimed[0],
        "contrast": contrast,
        "position": _position(position),
        "prefix": prefix,
    }
    for each in several.models or [model]:
        loading.check(each)
    output.check()
    if several.are_several:
        alone = {"--data": scores.data, "--generate": generate, "--output": generated}
        alone |= {"--maps": maps, "--licence": licence, "--tokens": tokens}
        several.check(inputs, {**alone, "--dry-run": output.dry_run})
    how = {"chat": chat, "truncate": truncate}
    options = {**how, **options_of_each(several.named, option or [])[0]}
    if scores.data is not None:
        single: dict[str, Any] = {"--generate": generate, "--output": generated, "--maps": maps}
        single |= {"--tokens": tokens, "--without-sinks": without_sinks}
        scores.check(inputs, output, single)
        options |= {**asked, "licence": licence, "pair": inputs.pair, "engine": sharing.chosen()}
        _write_scores(loading.load(model), scores, method, options, output)
        return
    scores.refuse_alone()
    if sharing != EngineOptions():
        raise UsageError("--engine, --address and --workers need --data: one text is done at once")
    text = inputs.read()
    if generate is not None or generated is not None:
        _check_generation(generate, [*asked.values(), maps, licence or None])
        asked = {"max_new_tokens": generate, "output": generated}
    else:
        asked["maps"] = maps
    if licence and without_sinks:
        raise UsageError("--licence is about the scores as they are: it takes no --without-sinks")
    if several.are_several:
        del asked["target"]
        how |= {**asked, "maps": False, "without_sinks": without_sinks}
        output.show(several.compare(loading, text, option or [], how))
        return
    subject = loading.load(model)
    asked |= {"licence": True} if licence else {}
    if output.dry_run:
        output.plan(_verb(generate), subject, text, method, **asked, **options)
        return
    result = _verb(generate)(subject, text, method, **asked, **options)
    shown = result.without_sinks() if without_sinks else result
    output.show(shown, tokens=tokens, last=_how_far(subject, result.origin.method, model))


def _write_scores(
    subject: Any,
    scores: ScoreOptions,
    method: str | None,
    asked: Mapping[str, Any],
    output: OutputOptions,
) -> None:
    from attlas.explaining.score_places import stopped_note
    from attlas.explaining.writing_scores import explain_to

    out = str(scores.out)
    read: dict[str, Any] = {"text": scores.text_column, "label": scores.label}
    read |= {"split": scores.split, "count": scores.count, "seed": scores.seed or 0}
    if output.dry_run:
        output.plan(explain_to, subject, scores.data, out, method, **read, **asked)
        return
    with watched(None, f"explaining {scores.data}") as watch:
        last = [Step("no text", 0, 0)]

        def take(step: Step) -> None:
            last[0] = step if step.total else last[0]
            watch(step)

        with stoppable(lambda: f"{last[0].what}; {stopped_note(out)}", resumes=True):
            written = explain_to(subject, scores.data, out, method, watch=take, **read, **asked)
    if output.as_json:
        print_json(written.to_dict())
        return
    problems = f", {written.problems:,} of them with a problem" if written.problems else ""
    new = written.rows - written.earlier
    rate = f"; {new / written.seconds:,.0f} texts a second" if new else "; all were there already"
    print_line(f"wrote {out}: {written.rows:,} rows{problems}{rate}")


def _position(given: str | None) -> Any:
    """A number, a word, or a word and which one of several."""
    if given is None or not given.strip():
        return given
    word, _, which = given.rpartition(" ")
    if not re.fullmatch(r"-?\d+", which):
        return given
    return (word.strip(), int(which)) if word.strip() else int(which)


def _how_far(subject: Any, method: str, model: str) -> str:
    """Say how far such explanations were found right for this model, or how to find out."""
    from attlas.auditing.records import find_record

    reads_more = subject.marks or subject.sound_argument
    if subject.compares or subject.reads_images or subject.reads_pairs or reads_more:
        return ""
    record = find_record(subject)
    if record is not None and method in record.found:
        low, high = (f"{100 * share:.0f} %".replace("-", "−") for share in record.found[method])
        told = (
            f"Audited on {record.texts} texts of {record.data}: {method} finds {low} to {high} of "
            "what matters (0 %: chance)."
        )
        return told if record.page is None else f"{told}\nSee {record.page}"
    data = "" if model == "sentiment" else " --data FILE"
    quick = " --quick" if method in QUICK_METHODS else ""
    asked = f"attlas audit --model {quote(model)}{data}{quick}"
    line = f"How far can you trust this? Find out: {asked}"
    return line if len(line) <= 80 else line.replace("out: ", "out:\n  ", 1)


def _check_generation(generate: int | None, others: Iterable[Any]) -> None:
    if generate is None:
        raise UsageError("--output needs --generate")
    if any(each is not None for each in others):
        raise UsageError(
            "--generate explains every token written: it takes no --target, --contrast, "
            "--position, --prefix, --maps or --licence"
        )


def _verb(generate: int | None) -> Callable[..., Any]:
    from attlas.explaining.explanations import explain
    from attlas.explaining.generations import explain_generation

    return explain if generate is None else explain_generation
