"""Engine: the user's choice of who does the work, checked before anything heavy is loaded."""

import socket
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from attlas.errors import UnknownNameError, UsageError

NAMES = ("local", "ray")
RUNNING = "auto"  # the address of the cluster that this machine belongs to
PATIENCE = 5.0  # seconds in which a cluster must answer


@dataclass(frozen=True)
class Engine:
    """Who does the work of a verb: this process, or workers that each hold the model.

    Args:
        name: "local", with workers that are processes of this machine if there are several, or
            "ray".
        address: Of a running cluster, `host:port`, or "auto" for that of this machine. Without
            one, `RAY_ADDRESS` is used, and without that Ray is started on this machine.
        workers: How many. If not given: on Ray one for each GPU of the cluster, or for each core;
            otherwise none but this process.
    """

    name: str = "local"
    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise UnknownNameError("engine", self.name, NAMES)
        if self.workers is not None and self.workers < 1:
            raise UsageError(f"workers are at least 1, not {self.workers}")
        if self.is_local and self.address is not None:
            raise UsageError(f"the address {self.address} is for the engine ray")

    @property
    def is_local(self) -> bool:
        """Whether the work is done on this machine, without Ray."""
        return self.name == "local"

    @property
    def is_alone(self) -> bool:
        """Whether this process does the work."""
        return self.is_local and (self.workers or 1) == 1

    def check(self) -> None:
        """Refuse an engine that is not installed, or a cluster that does not answer."""
        if self.is_local:
            return
        if find_spec("ray") is None:
            raise UsageError("the engine ray needs Ray: pip install 'attlas[ray]'")
        if self.address is not None and self.address != RUNNING:
            _check_answer(self.address)


LOCAL = Engine()


def engine_of(given: Any) -> Engine:
    """The engine that an argument names, ready to be used."""
    if not isinstance(given, (str, Engine)):
        raise UsageError(f"an engine is one of {', '.join(NAMES)} or an attlas.Engine, not {given}")
    engine = Engine(given) if isinstance(given, str) else given
    engine.check()
    return engine


def _check_answer(address: str) -> None:
    if address.startswith("ray://"):
        raise UsageError(
            f"{address} is the address of a Ray client: results are written by a process on the "
            "cluster itself, so start it there (ray job submit), with host:port or auto"
        )
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"the address of a cluster is host:port or {RUNNING}, not {address!r}")
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except (OSError, OverflowError) as problem:
        raise UsageError(f"no Ray cluster answers at {address}: {problem}") from problem
