"""Options that say who does the work."""

import os
from dataclasses import dataclass
from typing import Annotated

import typer

from attlas.engine import Engine
from attlas.errors import UsageError


@dataclass(frozen=True)
class EngineOptions:
    """Who does the work of a command: this process, or workers on Ray."""

    engine: Annotated[
        str, typer.Option(help="Who does the work: local, or ray for workers on a cluster.")
    ] = "local"
    address: Annotated[
        str | None,
        typer.Option(help="With --engine ray: a running cluster, host:port or auto."),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --engine ray, and for audits: how many share the work; as many as keep the "
            "machines busy, if left out.",
        ),
    ] = None

    def chosen(self) -> Engine:
        """The engine; one that is not there is told before anything heavy is imported."""
        engine = Engine(self.engine, self.address, self.workers)
        engine.check()
        if not engine.is_local and (engine.address or os.environ.get("RAY_ADDRESS")):
            from attlas.engine.cluster import connected

            with connected(engine):
                return engine
        return engine

    def alone(self) -> Engine:
        """The engine of a command that has no processes of its own to share work with."""
        if self.engine == "local" and self.workers is not None:
            raise UsageError("--workers needs --engine ray here")
        return self.chosen()
