"""The command `heads`: what heads are worth."""

from random import Random
from typing import Annotated, Any

import typer

from attlas.cli.heads import AsJson, Device, Dtype, Html, Model, Save, watching
from attlas.cli.show import print_found, quiet_libraries
from attlas.errors import UsageError

RANKED = 200  # texts that heads are ranked on, half of all at most


def heads(
    model: Model = "sentiment",
    data: Annotated[str, typer.Option(help="A set of texts: reviews, sst2, mnli, …")] = "reviews",
    split: Annotated[str | None, typer.Option(help="Of the data; test if not given.")] = None,
    texts: Annotated[int, typer.Option(help="Take so many texts.")] = 200,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="attattr, taylor, taylor_michel, accuracy_difference, attention or random; "
            "repeatable for curves."
        ),
    ] = None,
    prune_curve: Annotated[
        bool, typer.Option("--prune-curve", help="Accuracy as the least important heads go.")
    ] = False,
    effectiveness: Annotated[
        bool, typer.Option("--effectiveness", help="The same by each text's own ranking.")
    ] = False,
    redundancy: Annotated[
        bool, typer.Option("--redundancy", help="Which heads attend alike.")
    ] = False,
    steps: Annotated[int, typer.Option(help="Points of the attribution's integral.")] = 20,
    seed: Annotated[int, typer.Option(help="Decides which texts, and which are ranked on.")] = 0,
    truncate: Annotated[bool, typer.Option("--truncate", help="Cut what is too long.")] = False,
    html: Html = None,
    save: Save = None,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Say how much each head matters, or how right the model stays as heads go.

    Example: attlas heads --model sentiment --data reviews --prune-curve --html heads.html
    """
    asked = [prune_curve, effectiveness, redundancy]
    if sum(asked) > 1:
        raise UsageError("--prune-curve, --effectiveness or --redundancy: one at a time")
    if redundancy and by:
        raise UsageError("--redundancy compares heads by their attention: it takes no --by")
    if not any(asked) and len(by or ()) > 1:
        raise UsageError("several --by go with --prune-curve or --effectiveness")
    quiet_libraries()
    from attlas.data import texts as read_texts
    from attlas.heads import curves, importance
    from attlas.heads.rankings import RANKINGS
    from attlas.heads.redundancy import head_redundancy
    from attlas.models.load import load

    names = [RANKINGS[name].name for name in by or ()]
    subject = load(model, device=device, dtype=dtype)
    examples = read_texts(data, split=split, count=texts, seed=seed)
    with watching() as watch:
        given: dict[str, Any] = {"truncate": truncate, "watch": watch}
        found: Any
        if redundancy:
            found = head_redundancy(subject, [each.text for each in examples], **given)
        elif prune_curve:
            Random(seed).shuffle(examples)
            cut = min(RANKED, len(examples) // 2)
            first, others = examples[:cut], examples[cut:]
            found = curves.prune_curve(subject, first, others, names, steps=steps, **given)
        elif effectiveness:
            chosen = names or ["attattr", "attention"]
            found = curves.head_effectiveness(subject, examples, chosen, steps=steps, **given)
        else:
            name = names[0] if names else "attattr"
            if "steps" in RANKINGS[name].options:
                given["steps"] = steps
            found = importance.head_importance(subject, examples, name, **given)
    print_found(found, html, save, as_json)
