"""A pool of workers on Ray: pieces of work go out, results come in, lost workers are replaced.

What a worker has found is handed to the caller, who writes it, and counts as done only then: so a
piece of a lost worker is done again, and a piece that was handed over never is.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from attlas.engine.cluster import WorkerShare, connected, share_of
from attlas.engine.engine import Engine
from attlas.engine.processes import Processes
from attlas.engine.worker import RefusedPiece, SentModel, Work, Worker, packed
from attlas.errors import AttlasError, ModelError, UsageError, first_line
from attlas.models.subject import Subject

LOOK = 1.0  # seconds between two looks at how far the work is, if nothing comes in
MOST_LOST = 3  # workers that one piece may cost, or that may end before any has begun

Found = tuple[str, Any]  # the name of a piece, and what was found or the error that was raised


@dataclass
class _Piece:
    """A piece of work by its name, and how many workers were lost while they did it."""

    name: str
    content: Any
    lost: int = 0


@dataclass(eq=False)
class _Slot:
    """One worker, whether it holds its model yet, and the pieces that it was handed."""

    actor: Any
    is_open: bool = False
    was_sent: bool = False  # the model as files
    handed: dict[Any, _Piece] = field(default_factory=dict)


class _LostError(AttlasError):
    """A worker is gone, with what it was doing."""


class WorkerPool:
    """Workers, as many as there is work for, and at most as many as were asked for."""

    def __init__(
        self,
        ray: Any | Processes,
        share: WorkerShare,
        work: Work,
        subject: Subject | None,
        ahead: int = 1,
    ) -> None:
        self.share, self._ahead = share, ahead
        self._ray, self._subject = ray, subject
        sent = None if subject is None else SentModel.of(subject)
        threads = min(max(share.cpus, 1), torch.get_num_threads())
        actors = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_restarts=0)(Worker)
        given = ray.put(work)
        self._hire: Callable[[], Any] = lambda: actors.remote(given, sent, threads, share.gpus)
        self._files: Any = None  # the model as files, once a worker has asked for them
        self._slots: list[_Slot] = []
        self._refs: dict[Any, tuple[_Slot, _Piece | None]] = {}
        self._waiting: deque[_Piece] = deque()
        self._lost = self._failed = 0

    def put(self, name: str, content: Any) -> None:
        """Add a piece, before those that are still to come."""
        self._waiting.append(_Piece(name, content))

    @property
    def ready(self) -> int:
        """How many workers hold their model."""
        return sum(each.is_open for each in self._slots)

    def state(self) -> str:
        """The workers in words."""
        ready, starting = self.ready, len(self._slots) - self.ready
        parts = [f"{ready} worker{'' if ready == 1 else 's'}"]
        parts += [f"{starting} starting"] if starting else []
        parts += [f"{self._lost} lost and replaced"] if self._lost else []
        return ", ".join(parts)

    def results(
        self, pieces: Iterable[Found], look: Callable[[], None] = lambda: None
    ) -> Iterator[Found]:
        """What is found for each piece, in the order in which workers end.

        Pieces are taken as workers need them. `look` is called when something happens, and about
        every second.
        """
        source = iter(pieces)
        while True:
            self._draw(source)
            self._staff()
            self._hand_out()
            if not self._waiting and not self._in_hand():
                return
            ready, _ = self._ray.wait(list(self._refs), timeout=LOOK)
            look()
            for ref in ready:
                yield from self._take(ref)

    def end(self) -> None:
        """Send all workers away."""
        for slot in self._slots:
            self._ray.kill(slot.actor)
        self._slots.clear()
        self._refs.clear()

    def _draw(self, source: Iterator[Found]) -> None:
        while len(self._waiting) < self.share.workers * self._ahead:
            piece = next(source, None)
            if piece is None:
                return
            self._waiting.append(_Piece(*piece))

    def _in_hand(self) -> int:
        return sum(len(each.handed) for each in self._slots)

    def _staff(self) -> None:
        while len(self._slots) < min(self.share.workers, len(self._waiting) + self._in_hand()):
            slot = _Slot(self._hire())
            self._slots.append(slot)
            self._refs[slot.actor.open.remote()] = (slot, None)

    def _hand_out(self) -> None:
        """Hand pieces to those who have fewest."""
        for count in range(self._ahead):
            for slot in self._slots:
                if self._waiting and slot.is_open and len(slot.handed) == count:
                    piece = self._waiting.popleft()
                    ref = slot.actor.do.remote(piece.content)
                    slot.handed[ref] = piece
                    self._refs[ref] = (slot, piece)

    def _take(self, ref: Any) -> Iterator[Found]:
        if ref not in self._refs:
            return  # of a worker that was lost meanwhile
        slot, piece = self._refs[ref]
        try:
            found = self._get(ref)
        except _LostError as problem:
            yield from self._replace(slot, problem)
            return
        del self._refs[ref]
        if piece is None:
            self._open(slot, found)
        else:
            del slot.handed[ref]
            yield piece.name, found.error() if isinstance(found, RefusedPiece) else found

    def _get(self, ref: Any) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(ref)
        except errors.RayTaskError:
            raise  # a mistake of ours, with the worker's own trace
        except errors.RayError as problem:
            raise _LostError(first_line(problem)) from problem

    def _open(self, slot: _Slot, found: bool | RefusedPiece) -> None:
        """Let a worker begin, or send it the model as files if it could not open it by name."""
        if isinstance(found, RefusedPiece):
            raise found.error()
        if found:
            slot.is_open = True
            return
        assert self._subject is not None  # without a model there is nothing to open
        if slot.was_sent:
            raise UsageError(
                f"a worker cannot open {self._subject.name} as it is here, neither by its name nor "
                "from its files: use the local engine"
            )
        if self._files is None:
            self._files = self._ray.put(packed(self._subject))
        slot.was_sent = True
        self._refs[slot.actor.unpack.remote(self._files)] = (slot, None)

    def _replace(self, slot: _Slot, problem: _LostError) -> Iterator[Found]:
        """Put the pieces of a lost worker back; what it had sent already is taken."""
        self._slots.remove(slot)
        self._refs = {ref: each for ref, each in self._refs.items() if each[0] is not slot}
        self._ray.kill(slot.actor)
        self._lost += 1
        undone: list[_Piece] = []
        for ref, piece in slot.handed.items():
            try:
                if not self._ray.wait([ref], timeout=0)[0]:
                    raise _LostError("")
                found = self._get(ref)
            except _LostError:
                undone.append(piece)
            else:
                yield piece.name, found.error() if isinstance(found, RefusedPiece) else found
        if undone:
            undone[0].lost += 1
            if undone[0].lost >= MOST_LOST:
                raise ModelError(
                    f"{undone[0].name} ended {MOST_LOST} workers, the last with: {problem}; if "
                    "memory ran out, take fewer workers"
                )
        elif not slot.is_open:
            self._failed += 1
            if self._failed >= MOST_LOST and not any(each.is_open for each in self._slots):
                raise ModelError(f"{MOST_LOST} workers ended as they began: {problem}")
        self._waiting.extendleft(reversed(undone))


@contextmanager
def pool_of(
    engine: Engine,
    work: Work,
    subject: Subject | None,
    device: str | None = None,
    ahead: int = 1,
) -> Iterator[WorkerPool]:
    """Workers that hold this model, for the length of the block.

    Each is handed so many pieces `ahead`: with two it does not wait for the next one, but it may
    keep a piece that another has time for, so one is better where pieces take long.
    """
    with connected(engine) as ray:
        used = subject.device.type if subject is not None else torch.device(device or "cpu").type
        pool = WorkerPool(ray, share_of(ray, engine, used), work, subject, ahead)
        try:
            yield pool
        finally:
            pool.end()
