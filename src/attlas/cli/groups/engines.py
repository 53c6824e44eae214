"""Options that say who does the work."""

import os
from dataclasses import dataclass
from typing import Annotated

import typer

from attlas.engine import Engine


@dataclass(frozen=True)
class EngineOptions:
    """Who does the work of a command: this process, or workers on Ray."""

    engine: Annotated[
        str,
        typer.Option(help="Who does the work: local, or ray for workers on a cluster."),
    ] = "local"
    address: Annotated[
        str | None,
        typer.Option(help="With --engine ray: a running cluster, host:port or auto."),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            help="How many processes share the work; if left out, one, or with --engine ray and "
            "for audits as many as keep the machines busy.",
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
