"""The commands. What is heavy is imported inside them, so that `--help` is quick."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from attlas.cli import heads, importance, study
from attlas.cli.show import print_json, print_result, quiet_libraries, read_text
from attlas.errors import AttlasError, UnknownNameError, UsageError
from attlas.version import __version__

app = typer.Typer(
    name="attlas",
    help="Open a transformer at its attention, explain what it did, and test the explanation.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[str, typer.Option("--model", "-m", help="Embedded name, folder or hub id.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; chosen if not given.")]
Dtype = Annotated[str | None, typer.Option(help="float32, float16, bfloat16 or float64.")]
Task = Annotated[str | None, typer.Option(help="What the model is for, where it does not say.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Unsafe = Annotated[bool, typer.Option("--unsafe-weights", help="Allow pickled weights.")]
Trust = Annotated[bool, typer.Option("--trust-remote-code", help="Run code from the model.")]


@app.command()
def explain(
    text: Annotated[
        str, typer.Argument(help="The text, or - to read it from standard input.")
    ] = "",
    model: Model = "sentiment",
    method: Annotated[str, typer.Option(help="See `attlas methods`.")] = "gradient_attention",
    target: Annotated[str | None, typer.Option(help="Label, class number, token.")] = None,
    contrast: Annotated[str | None, typer.Option(help="Explain the target against this.")] = None,
    pair: Annotated[
        str | None, typer.Option(help="A second text, or a question's context.")
    ] = None,
    image: Annotated[Path | None, typer.Option(help="A picture instead of a text.")] = None,
    prefix: Annotated[str | None, typer.Option(help="What the decoder has written.")] = None,
    generate: Annotated[
        int | None, typer.Option(help="Explain every token of what it writes, up to this many.")
    ] = None,
    output: Annotated[
        str | None, typer.Option(help="With --generate: explain this text instead.")
    ] = None,
    position: Annotated[int | None, typer.Option(help="The token to read the target at.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="name=value, for the method.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page.")] = None,
    save: Annotated[Path | None, typer.Option(help="Save the result.")] = None,
    truncate: Annotated[bool, typer.Option("--truncate", help="Cut what is too long.")] = False,
    chat: Annotated[bool, typer.Option("--chat", help="Apply the chat template.")] = False,
    maps: Annotated[
        bool | None, typer.Option("--maps/--no-maps", help="Hold maps; if small, when not given.")
    ] = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Show tokens, not words.")] = False,
    without_sinks: Annotated[
        bool, typer.Option("--without-sinks", help="Leave out a first token that takes most.")
    ] = False,
    task: Task = None,
    device: Device = None,
    dtype: Dtype = None,
    unsafe_weights: Unsafe = False,
    trust_remote_code: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Explain a prediction: a score for each token.

    Example: attlas explain --method attention_rollout "not a great film, but I could not look away"
    """
    quiet_libraries()
    from attlas.cli.show import parse_options, print_found
    from attlas.explaining import explain as explain_text
    from attlas.explaining import explain_generation
    from attlas.methods import METHODS
    from attlas.models.load import load

    options = parse_options(option or [], METHODS[method].options, method)
    given = read_text(text, pair, image)
    asked: dict[str, Any] = {
        "target": target,
        "contrast": contrast,
        "position": position,
        "prefix": prefix,
    }
    if generate is None and output is not None:
        raise UsageError("--output goes with --generate")
    if generate is not None and any(each is not None for each in (*asked.values(), maps)):
        raise UsageError("--generate explains every token written: it takes no target or prefix")
    subject = load(
        model,
        task=task,
        device=device,
        dtype=dtype,
        unsafe_weights=unsafe_weights,
        trust_remote_code=trust_remote_code,
    )
    how: dict[str, Any] = {"chat": chat, "truncate": truncate, **options}
    if generate is None:
        found = explain_text(subject, given, method, **asked, maps=maps, **how)
    else:
        how = {"max_new_tokens": generate, "output": output, **how}
        found = explain_generation(subject, given, method, **how)
    if without_sinks:
        found = found.without_sinks()
    print_found(found, html, save, as_json, tokens=tokens)


@app.command()
def check(
    model: Annotated[str, typer.Argument(help="Embedded name, folder or hub id.")] = "sentiment",
    task: Task = None,
    device: Device = None,
    dtype: Dtype = None,
    unsafe_weights: Unsafe = False,
    trust_remote_code: Trust = False,
    as_json: AsJson = False,
) -> None:
    """Check that a model is opened exactly, and say which methods can run on it.

    Example: attlas check sentiment
    """
    quiet_libraries()
    from attlas.checking import check as check_subject
    from attlas.models.load import load

    subject = load(
        model,
        task=task,
        device=device,
        dtype=dtype,
        unsafe_weights=unsafe_weights,
        trust_remote_code=trust_remote_code,
    )
    found = check_subject(subject)
    if as_json:
        print_json(found.payload())
    else:
        print_result(found)
    if not found.passed:
        raise AttlasError(f"{model} is not opened exactly")


@app.command()
def methods(
    score: Annotated[
        bool, typer.Option("--score", help="Score them on models of known truth; takes minutes.")
    ] = False,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Score on this model; repeatable.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Score this one; repeatable.")] = None,
    count: Annotated[
        int | None, typer.Option(help="Inputs from each model, 100 if not given; dear: a quarter.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides which inputs, 0 if not given.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the methods, or score them where it is known what the model relies on.

    Example: attlas methods --score --model recall --method raw_attention
    """
    quiet_libraries()
    from attlas.cli.show import print_methods
    from attlas.methods import METHODS

    given = {"count": count, "seed": seed}
    numbers = {name: value for name, value in given.items() if value is not None}
    if not score:
        if model or method or numbers or markdown:
            raise UsageError("--model, --method, --count, --seed and --markdown go with --score")
        print_methods(METHODS, as_json)
        return
    if markdown and as_json:
        raise UsageError("--markdown or --json, not both")
    from attlas.cli import scores
    from attlas.scoring import score as score_methods

    with scores.watching() as watch:
        found = score_methods(model or (), method or (), watch=watch, **numbers)
    if as_json:
        print_json(found.payload())
    elif markdown:
        print(scores.markdown(found))
    else:
        scores.print_scores(found)


@app.command()
def models(
    verify: Annotated[bool, typer.Option("--verify", help="Measure what they promise.")] = False,
    name: Annotated[str | None, typer.Option(help="One model alone: its whole card.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the models that come in the box, or measure what they promise.

    Example: attlas models --verify
    """
    quiet_libraries()
    from attlas.cli.show import print_cards, print_verified
    from attlas.models.load import embedded_names
    from attlas.verifying import cards
    from attlas.verifying import verify as verify_model

    known = embedded_names()
    if name is not None and name not in known:
        raise UnknownNameError("embedded model", name, known)
    chosen = known if name is None else [name]
    if not verify:
        print_cards([card for card in cards() if card.name in chosen], as_json, name is not None)
        return
    failed = print_verified((verify_model(each) for each in chosen), as_json)
    if failed:
        raise AttlasError(f"not what was promised: {', '.join(failed)}")


app.command()(heads.tree)
app.command()(heads.triggers)
app.command()(importance.heads)
app.command()(study.study)


def _show_version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"attlas {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print it."),
    ] = None,
) -> None:
    """Open a transformer at its attention, explain what it did, and test the explanation."""


def main() -> None:
    """Run the command line: one clear line and a status for whatever goes wrong."""
    try:
        app()
    except UsageError as problem:
        _fail(problem, 2)
    except AttlasError as problem:
        _fail(problem, 1)
    except BrokenPipeError:  # the reader of our output has gone
        sys.stderr.close()
        sys.exit(1)


def _fail(problem: Exception, status: int) -> None:
    line = " ".join(str(problem).split())
    print(f"attlas: {line}", file=sys.stderr)
    sys.exit(status)
