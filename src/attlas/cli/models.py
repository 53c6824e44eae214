"""The command `models`."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from attlas.cli.options import AsJson
from attlas.cli.output import print_json, print_line, print_table, quiet_libraries
from attlas.errors import AttlasError, UnknownNameError


def models(
    *,
    verify: Annotated[
        bool, typer.Option("--verify", help="Measure what their cards promise.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="This model only; without --verify, its whole card.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the models that come with Attlas, or measure what their cards promise.

    Example: attlas models --verify
    """
    from attlas.embedded.verify import cards
    from attlas.models.facts.places import embedded_names

    known = embedded_names()
    if name is not None and name not in known:
        raise UnknownNameError("built-in model", name, known)
    chosen = known if name is None else [name]
    if not verify:
        _print_cards([card for card in cards() if card.name in chosen], as_json, name is not None)
        return
    quiet_libraries()
    from attlas.embedded.verify import verify as verify_model

    failed = _print_verified((verify_model(each) for each in chosen), as_json)
    if failed:
        raise AttlasError(f"not what the card promises: {', '.join(failed)}")


def _print_cards(cards: Sequence[Any], as_json: bool, whole: bool) -> None:
    """Print a table of all models, the whole card of one, or JSON."""
    if as_json:
        print_json([asdict(card) for card in cards])
    elif whole:
        print_line(cards[0].text.rstrip())
    else:
        print_table(
            (card.name, card.task, f"{card.megabytes:.1f} MB", f"{card.about} ({card.sites} heads)")
            for card in cards
        )


def _print_verified(results: Iterable[Any], as_json: bool) -> list[str]:
    """Print the figures of each model as they come, and return the models that failed."""
    verified = []
    for each in results:
        verified.append(each)
        if as_json:
            continue
        for figure, value in each.figures.items():
            least = each.minimum.get(figure)
            most = each.maximum.get(figure)
            needed = "" if least is None else f"at least {least:g}"
            needed = needed if most is None else f"at most {most:g}"
            print_line(f"{each.name:<20} {figure:<46} {value:7.4f}  {needed}")
    if as_json:
        print_json([asdict(each) | {"passed": each.passed} for each in verified])
    return [each.name for each in verified if not each.passed]
