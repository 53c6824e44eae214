"""The command `explain`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import typer

from attlas.cli.options import (
    AsJson,
    Device,
    Dtype,
    Html,
    Image,
    Model,
    Save,
    Target,
    Task,
    Text,
    Truncate,
    Trust,
    Unsafe,
)
from attlas.cli.show import parse_options, print_found, quiet_libraries, read_text
from attlas.errors import UsageError

Method = Annotated[str, typer.Option(help="See `attlas methods`.")]
Contrast = Annotated[str | None, typer.Option(help="Explain the target against this.")]
Pair = Annotated[str | None, typer.Option(help="A second text, or a question's context.")]
Prefix = Annotated[str | None, typer.Option(help="What the decoder has written.")]
Position = Annotated[int | None, typer.Option(help="The token to read the target at.")]
Generate = Annotated[
    int | None, typer.Option(help="Explain every token of what it writes, up to this many.")
]
Output = Annotated[str | None, typer.Option(help="With --generate: explain this text instead.")]
Option = Annotated[list[str] | None, typer.Option(help="name=value, for the method.")]
Chat = Annotated[bool, typer.Option("--chat", help="Apply the chat template.")]
Maps = Annotated[
    bool | None, typer.Option("--maps/--no-maps", help="Hold maps; if small, when not given.")
]
Tokens = Annotated[bool, typer.Option("--tokens", help="Show tokens, not words.")]
WithoutSinks = Annotated[
    bool, typer.Option("--without-sinks", help="Leave out a first token that takes most.")
]


def explain(
    text: Text = "",
    model: Model = "sentiment",
    method: Method = "gradient_attention",
    target: Target = None,
    contrast: Contrast = None,
    pair: Pair = None,
    image: Image = None,
    prefix: Prefix = None,
    generate: Generate = None,
    output: Output = None,
    position: Position = None,
    option: Option = None,
    html: Html = None,
    save: Save = None,
    truncate: Truncate = False,
    chat: Chat = False,
    maps: Maps = None,
    tokens: Tokens = False,
    without_sinks: WithoutSinks = False,
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
    from attlas.models.load import load

    asked = {"target": target, "contrast": contrast, "position": position, "prefix": prefix}
    how = {"chat": chat, "truncate": truncate, **_method_options(method, option or [])}
    given = read_text(text, pair, image)
    if generate is not None or output is not None:
        _check_generation(generate, [*asked.values(), maps])
        asked = {"max_new_tokens": generate, "output": output}
    else:
        asked["maps"] = maps
    subject = load(
        model,
        task=task,
        device=device,
        dtype=dtype,
        unsafe_weights=unsafe_weights,
        trust_remote_code=trust_remote_code,
    )
    found = _verb(generate)(subject, given, method, **asked, **how)
    found = found.without_sinks() if without_sinks else found
    print_found(found, html, save, as_json, tokens=tokens)


def _method_options(method: str, given: Sequence[str]) -> dict[str, Any]:
    from attlas.methods import METHODS

    return parse_options(given, METHODS[method].options, method)


def _check_generation(generate: int | None, others: Iterable[Any]) -> None:
    if generate is None:
        raise UsageError("--output goes with --generate")
    if any(each is not None for each in others):
        raise UsageError("--generate explains every token written: it takes no target or prefix")


def _verb(generate: int | None) -> Callable[..., Any]:
    from attlas.explaining import explain, explain_generation

    return explain if generate is None else explain_generation
