"""What the command `explain` compares: models, texts, methods and targets, all with all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

import typer

from attlas.cli.options import InputOptions, LoadOptions, options_of_each
from attlas.errors import UsageError


@dataclass(frozen=True)
class ComparedOptions:
    """What may be given several times, and is compared then."""

    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="The model: a built-in name, a folder, a GGUF file or a hub id. "
            "Several are compared.",
        ),
    ] = None
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="See `attlas methods`; the best that runs if not given. Several are compared.",
        ),
    ] = None
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            help="What to explain: a label, a class number or a token. Several are compared.",
        ),
    ] = None
    beside: Annotated[
        list[str] | None,
        typer.Option(help="Another text to compare with, word by word; repeatable."),
    ] = None

    @property
    def named(self) -> list[str | None]:
        """The methods; None for the best that runs."""
        return [*self.methods] if self.methods else [None]

    @property
    def aimed(self) -> list[str | None]:
        """The targets; None for the prediction."""
        return [*self.targets] if self.targets else [None]

    @property
    def model(self) -> str:
        """The first of the models."""
        return (self.models or ["sentiment"])[0]

    @property
    def are_several(self) -> bool:
        """Whether there is anything to compare."""
        most = max(len(each or ()) for each in (self.models, self.methods, self.targets))
        return most > 1 or bool(self.beside)

    def check(self, inputs: InputOptions, alone: Mapping[str, Any]) -> None:
        """Refuse what goes with one explanation `alone`."""
        given = {
            f"--{name}": getattr(inputs, name) for name in ("pair", "image", "audio", "messages")
        }
        for option, value in {**alone, **(given if self.beside else {})}.items():
            if value:
                raise UsageError(
                    "several methods, targets, texts or models are compared word by word: "
                    f"{option} goes with one"
                )

    def compare(
        self, loading: LoadOptions, text: Any, options: Sequence[str], how: Mapping[str, Any]
    ) -> Any:
        """Explain every text by every model, method and target; a model is loaded once."""
        from attlas.explaining.comparing import compare
        from attlas.explaining.explanations import explain

        own = options_of_each(self.named, options)
        asked = {name: value for name, value in how.items() if name != "without_sinks"}
        found = []
        for model in self.models or [self.model]:
            subject = loading.load(model)
            calls = product([text, *(self.beside or ())], enumerate(self.named), self.aimed)
            for each, (place, method), target in calls:
                result = explain(subject, each, method, target=target, **asked, **own[place])
                found.append(result.without_sinks() if how["without_sinks"] else result)
        return compare(found)
