"""A Ray cluster: how this process joins it, and how its cores and GPUs are shared by workers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any

from attlas.engine.engine import RUNNING, Engine
from attlas.errors import UsageError, first_line

# Ray asks nobody, and leaves the GPUs of what is no worker alone.
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
STORE = 2**28  # bytes of memory in which a Ray of our own passes results on; more goes to disk


@dataclass(frozen=True)
class WorkerShare:
    """How many workers there are, and what of a machine each one has to itself."""

    workers: int
    cpus: int
    gpus: float | int


@contextmanager
def connected(engine: Engine) -> Iterator[Any]:
    """Ray, joined to the cluster for the length of the block; one that is joined already stays.

    Processes of this machine stand for a cluster of one node.
    """
    if engine.is_local:
        from attlas.engine.processes import Processes

        own = Processes()
        try:
            yield own
        finally:
            own.shutdown()
        return
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    import ray

    if ray.is_initialized():
        yield ray
        return
    address = engine.address or os.environ.get("RAY_ADDRESS")
    quiet = {"log_to_driver": False, "logging_level": "error", "configure_logging": True}
    room = {"num_cpus": max(os.cpu_count() or 1, engine.workers or 0), "include_dashboard": False}
    try:
        if address is None:
            ray.init("local", **room, **quiet, object_store_memory=STORE)
        else:
            ray.init(address, **quiet)
    except Exception as problem:
        where = "on this machine" if address in (None, RUNNING) else f"at {address}"
        raise UsageError(f"Ray does not work {where}: {first_line(problem)}") from problem
    try:
        yield ray
    finally:
        ray.shutdown()


def share_of(ray: Any, engine: Engine, device: str) -> WorkerShare:
    """How workers for a device share the cluster as it is now."""
    nodes = [each["Resources"] for each in ray.nodes() if each["Alive"]]
    return divided(nodes, device, engine.workers)


def divided(nodes: Sequence[Mapping[str, Any]], device: str, workers: int | None) -> WorkerShare:
    """The share of each worker; a cluster that grows has room for more than it has now."""
    cores = [int(each.get("CPU", 0)) for each in nodes]
    if device == "cuda":
        cards = int(sum(each.get("GPU", 0) for each in nodes))
        if not cards and workers is None:
            raise UsageError("the model is on a GPU here, and no node of the Ray cluster has one")
        count = workers or cards
        together = ceil(count / max(cards, 1))
        return WorkerShare(count, 1 if sum(cores) >= count else 0, 1 / together)
    count = workers or max(sum(cores), 1)
    fitting = [each for each in range(1, max(cores) + 1) if _room(cores, each) >= count]
    return WorkerShare(count, max(fitting, default=1), 0)


def _room(cores: Sequence[int], each: int) -> int:
    """How many workers fit that take so many cores."""
    return sum(own // each for own in cores)
