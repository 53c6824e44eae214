"""The command `heads`: what heads are worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any

import typer

from attlas.cli.heads import watching
from attlas.cli.options import (
    AsJson,
    Data,
    Device,
    Dtype,
    Html,
    Model,
    Save,
    Split,
    Truncate,
)
from attlas.cli.show import print_found, quiet_libraries
from attlas.errors import UsageError

RANKED = 200  # texts that heads are ranked on, half of all at most


def heads(
    model: Model = "sentiment",
    data: Data = "reviews",
    split: Split = None,
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
    truncate: Truncate = False,
    html: Html = None,
    save: Save = None,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Say how much each head matters, or how right the model stays as heads go.

    Example: attlas heads --model sentiment --data reviews --prune-curve --html heads.html
    """
    _check(by or (), prune_curve, effectiveness, redundancy)
    quiet_libraries()
    from attlas.data import read_examples
    from attlas.heads.rankings import RANKINGS
    from attlas.models.load import load

    names = [RANKINGS[name].name for name in by or ()]
    subject = load(model, device=device, dtype=dtype)
    examples = read_examples(data, split=split, count=texts, seed=seed).examples
    with watching() as watch:
        asked = _Asked(subject, examples, names, steps, {"truncate": truncate, "watch": watch})
        if redundancy:
            found = asked.redundancy()
        elif prune_curve:
            found = asked.prune_curve(seed)
        elif effectiveness:
            found = asked.effectiveness()
        else:
            found = asked.importance()
    print_found(found, html, save, as_json)


def _check(by: Sequence[str], prune_curve: bool, effectiveness: bool, redundancy: bool) -> None:
    asked = [prune_curve, effectiveness, redundancy]
    if sum(asked) > 1:
        raise UsageError("--prune-curve, --effectiveness or --redundancy: one at a time")
    if redundancy and by:
        raise UsageError("--redundancy compares heads by their attention: it takes no --by")
    if not any(asked) and len(by) > 1:
        raise UsageError("several --by go with --prune-curve or --effectiveness")


@dataclass(frozen=True, eq=False)
class _Asked:
    """What was asked for, and the verbs it can be handed to."""

    subject: Any
    examples: list[Any]
    by: list[str]
    steps: int
    how: dict[str, Any]

    def importance(self) -> Any:
        from attlas.heads.importance import head_importance
        from attlas.heads.rankings import RANKINGS

        name = self.by[0] if self.by else "attattr"
        takes_steps = "steps" in RANKINGS[name].options
        how = {**self.how, "steps": self.steps} if takes_steps else self.how
        return head_importance(self.subject, self.examples, name, **how)

    def prune_curve(self, seed: int) -> Any:
        from attlas.heads.curves import prune_curve

        mixed = Random(seed).sample(self.examples, len(self.examples))
        cut = min(RANKED, len(mixed) // 2)
        first, others = mixed[:cut], mixed[cut:]
        return prune_curve(self.subject, first, others, self.by, steps=self.steps, **self.how)

    def effectiveness(self) -> Any:
        from attlas.heads.curves import head_effectiveness

        by = self.by or ["attattr", "attention"]
        return head_effectiveness(self.subject, self.examples, by, steps=self.steps, **self.how)

    def redundancy(self) -> Any:
        from attlas.heads.redundancy import head_redundancy

        return head_redundancy(self.subject, [each.text for each in self.examples], **self.how)
