"""The commands `check` and `models`."""

from typing import Annotated

import typer

from attlas.cli.options import AsJson, Device, Dtype, Task, Trust, Unsafe
from attlas.cli.show import print_cards, print_json, print_result, print_verified, quiet_libraries
from attlas.errors import AttlasError, UnknownNameError


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


def models(
    verify: Annotated[bool, typer.Option("--verify", help="Measure what they promise.")] = False,
    name: Annotated[str | None, typer.Option(help="One model alone: its whole card.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the models that come in the box, or measure what they promise.

    Example: attlas models --verify
    """
    quiet_libraries()
    from attlas.embedded.verify import cards
    from attlas.embedded.verify import verify as verify_model
    from attlas.models.load import embedded_names

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
