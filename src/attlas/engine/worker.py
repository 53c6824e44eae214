"""A worker: it holds a model, and does one piece of work after another as it is told."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from attlas.errors import (
    AttlasError,
    ModelError,
    NotDefinedError,
    ResultFileError,
    TextTooLongError,
    UnsupportedModelError,
    UsageError,
)
from attlas.models.facts.fingerprint import identity
from attlas.models.facts.transformers_internals import (
    ATTRIBUTE,
    configurations,
    implementations,
)
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.results.support.tables import difference

Do = Callable[[Any], Any]
OWN = 0.9  # of a worker's share of a GPU's memory; the rest is for what CUDA itself takes there
# Errors whose only argument is their message, the most special first.
KINDS = (
    *(TextTooLongError, UsageError, NotDefinedError, UnsupportedModelError, ModelError),
    *(ResultFileError, AttlasError),
)


@runtime_checkable
class Work(Protocol):
    """What workers are to do. It travels to each of them once; pieces of work follow one by one."""

    def begin(self, subject: Subject | None) -> Do:
        """Return what does a piece of work, and gives back what the driver writes."""
        ...


@dataclass(frozen=True)
class RefusedPiece:
    """An error of ours on its way from a worker."""

    kind: type[AttlasError]
    said: str

    @classmethod
    def of(cls, problem: AttlasError) -> "RefusedPiece":
        """What is sent of an error."""
        return cls(next(each for each in KINDS if isinstance(problem, each)), str(problem))

    def error(self) -> AttlasError:
        """The error again."""
        return self.kind(self.said)


@dataclass(frozen=True)
class SentModel:
    """How a worker opens the model: by its name, and if that is another model there, from files."""

    name: str
    task: str | None
    dtype: str
    device: str
    trusted: bool  # whether its own code runs in the process that sends it
    attention: list[str | None]  # the implementation that each of its configurations names
    identity: Mapping[str, Any]

    @classmethod
    def of(cls, subject: Subject) -> "SentModel":
        """What is sent of a model; one that is spread or on disk fits into no worker."""
        spread = set(getattr(subject.model, "hf_device_map", {}).values())
        if len(spread) > 1 or "disk" in spread:
            where = "on disk" if len(spread) == 1 else f"spread over {len(spread)} devices"
            raise UsageError(
                f"{subject.name} is {where} (device_map), and each worker holds the model on one "
                "device: load it on one device, or use the local engine"
            )
        return cls(
            subject.name,
            subject.task.name if subject.task else None,
            str(subject.model.dtype).removeprefix("torch."),
            subject.device.type,
            type(subject.model).__module__.startswith("transformers_modules"),
            implementations(configurations(subject.model)),
            identity(subject),
        )

    def open(self, place: str) -> Subject | None:
        """The model at a place; None if there is none, or another one."""
        try:
            subject = load(
                place,
                task=self.task,
                device=self.device,
                dtype=self.dtype,
                trust_remote_code=self.trusted,
            )
        except AttlasError:
            return None
        subject.name = self.name
        found_in = configurations(subject.model)
        if len(found_in) == len(self.attention):
            for config, name in zip(found_in, self.attention, strict=True):
                setattr(config, ATTRIBUTE, name)
        found = identity(subject)
        differs = difference(self.identity["versions"], found["versions"])
        if differs:
            raise UsageError(f"a worker has other libraries: here and there, {differs}")
        return None if difference(self.identity, found) else subject


def packed(subject: Subject) -> dict[str, bytes]:
    """The model and its tokenizer as the files of a folder, the weights as safetensors."""
    with tempfile.TemporaryDirectory() as place:
        try:
            subject.model.save_pretrained(place)  # type: ignore[operator]
            subject.processor.save_pretrained(place)
        except Exception as problem:
            raise UsageError(
                f"{subject.name} cannot be sent to workers, as it cannot be saved: {problem}; "
                "use the local engine"
            ) from problem
        files = [each for each in Path(place).rglob("*") if each.is_file()]
        return {str(each.relative_to(place)): each.read_bytes() for each in files}


def keep_to_share(gpus: float | int) -> None:
    """Leave the other workers on a GPU their shares of its memory; one alone may take all of it.

    What torch has once taken it keeps for later, where no other process can use it.
    """
    if 0 < gpus < 1 and torch.cuda.is_available():
        torch.cuda.set_per_process_memory_fraction(OWN * gpus)


class Worker:
    """What runs in each process of the cluster."""

    def __init__(self, work: Work, sent: SentModel | None, threads: int, gpus: float | int) -> None:
        torch.set_num_threads(threads)
        keep_to_share(gpus)
        self._work, self._sent = work, sent
        self._do: Do | None = None

    def open(self) -> bool | RefusedPiece:
        """Open the model by its name; False if it is not there."""
        if self._sent is None:
            self._do = self._work.begin(None)
            return True
        return self._begin(self._sent.name)

    def unpack(self, files: Mapping[str, bytes]) -> bool | RefusedPiece:
        """Open the model from its files; False if it is another one all the same."""
        with tempfile.TemporaryDirectory() as place:
            for name, content in files.items():
                path = Path(place) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            return self._begin(place)

    def do(self, piece: Any) -> Any:
        """Do a piece of work."""
        assert self._do is not None
        try:
            with torch.inference_mode(False):
                return self._do(piece)
        except AttlasError as problem:
            return RefusedPiece.of(problem)

    def _begin(self, place: str) -> bool | RefusedPiece:
        assert self._sent is not None
        try:
            subject = self._sent.open(place)
            if subject is not None:
                self._do = self._work.begin(subject)
        except AttlasError as problem:
            return RefusedPiece.of(problem)
        return subject is not None
