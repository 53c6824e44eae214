"""The board of jobs: takes them in, runs each in a process, and knows how far it is."""

import multiprocessing
import secrets
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from time import monotonic, time

from attlas.serving.answers import ENDED
from attlas.serving.errors import NoSuchThing, Refused
from attlas.serving.jobs.auditing import report_page
from attlas.serving.jobs.child import Order, work_on
from attlas.serving.jobs.store import JobStore, Record
from attlas.serving.logs import log
from attlas.serving.requests import AnyJob, AuditJob, PruneJob, plain_request
from attlas.serving.settings import Settings
from attlas.serving.shelf import Shelf

LOOK = 0.1  # seconds between two looks whether a job was cancelled
GRACE = 5.0  # seconds that a process has to end
SHOWN = 60  # characters of a text in a title
MOST_POINTS = 2000


@dataclass
class Running:
    """What is known of a job while it runs."""

    progress: Record | None = None
    points: list[list[float]] = field(default_factory=list)
    cancelled: threading.Event = field(default_factory=threading.Event)


class JobBoard:
    """All jobs of one server. What is unfinished when it stops goes on at the next start."""

    def __init__(self, settings: Settings, shelf: Shelf) -> None:
        self._limits, self._shelf = settings.limits, shelf
        self._audits = settings.keep / "audits"
        self._store = JobStore(settings.keep)
        self._running: dict[str, Running] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._pool = ThreadPoolExecutor(settings.limits.jobs, thread_name_prefix="jobs")

    def start(self) -> None:
        """Begin what is waiting from an earlier run."""
        self._store.wait_again()
        for number in self._store.waiting():
            self._pool.submit(self._run, number)

    def close(self) -> None:
        """Stop all processes; their jobs wait for the next start."""
        self._closing.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._store.close()

    def counts(self) -> dict[str, int]:
        """How many jobs wait and run."""
        return self._store.counts()

    def submit(self, given: AnyJob) -> tuple[Record, bool]:
        """Take a job in, or find the one that did the same work; returns whether it is new."""
        given = self._completed(given)
        request = plain_request(given)
        with self._lock:
            if isinstance(given, (PruneJob, AuditJob)):
                known = self._store.same(request)
                if known is not None:
                    return self.find(known["id"]), False
            if self._store.counts()["queued"] >= self._limits.job_queue:
                raise Refused(429, "busy", "too many jobs wait; come back later")
            number = secrets.token_hex(8)
            record = {"id": number, "job": given.job, "model": given.model, "title": _title(given)}
            self._store.add(record | {"state": "queued", "created": time(), "request": request})
        log("info", "job queued", id=number, job=given.job)
        self._pool.submit(self._run, number)
        return self.find(number), True

    def _completed(self, given: AnyJob) -> AnyJob:
        """The job with its data named; data that are not the model's are refused."""
        self._shelf.entry(given.model)
        if not isinstance(given, (PruneJob, AuditJob)):
            return given
        allowed = self._shelf.data(given.model)
        texts = given.texts if isinstance(given, AuditJob) else None
        if given.data is None and texts is None and allowed:
            return given.model_copy(update={"data": allowed[0]})
        if given.data not in allowed and texts is None:
            says = f"there are no such texts for {given.model}; there are: {', '.join(allowed)}"
            raise Refused(422, "unknown name", says, "data")
        return given

    def lines(self) -> list[Record]:
        """All jobs, the newest first."""
        return [each | {"progress": self._progress(each["id"])} for each in self._store.lines()]

    def find(self, number: str, first: int = 0) -> Record:
        """One job, with its points from the first on."""
        record = self._store.find(number)
        if record is None:
            raise NoSuchThing("there is no such job")
        running = self._running.get(number)
        points = record["points"] if running is None else list(running.points)
        known = {"points": points[first:], "points_total": len(points)}
        return record | known | {"progress": self._progress(number)}

    def _progress(self, number: str) -> Record | None:
        running = self._running.get(number)
        return None if running is None else running.progress

    def cancel(self, number: str) -> Record:
        """Stop a job that waits or runs."""
        with self._lock:
            record = self.find(number)
            if record["state"] in ENDED:
                raise Refused(409, "state", "this job has ended already")
            running = self._running.get(number)
            if running is None:
                self._store.change(number, state="cancelled", ended=time())
            else:
                running.cancelled.set()
        return self.find(number)

    def forget(self, number: str) -> None:
        """Remove a job that has ended, and its report."""
        if self.find(number)["state"] not in ENDED:
            raise Refused(409, "state", "this job has not ended; cancel it first")
        self._store.remove(number)
        shutil.rmtree(self._audits / number, ignore_errors=True)

    def report(self, number: str) -> str:
        """The page of an audit that is done."""
        record = self.find(number)
        page = report_page(self._audits / number) if record["state"] == "done" else None
        if page is None:
            raise NoSuchThing("there is no such report")
        return page

    def _run(self, number: str) -> None:
        """Run a job in a process, from the queue to its end."""
        with self._lock:
            record = self._store.find(number)
            if record is None or record["state"] != "queued" or self._closing.is_set():
                return
            running = self._running[number] = Running()
            self._store.change(number, state="running")
        try:
            fields = self._watched(record, running)
        except Exception as problem:
            log("error", "a job failed", id=number, problem=problem)
            fields = {"state": "failed", "error": "its process could not be run"}
        with self._lock:
            self._store.change(number, **fields, points=running.points)
            self._running.pop(number)
        log("info", "job ended", id=number, job=record["job"], state=fields["state"])

    def _watched(self, record: Record, running: Running) -> Record:
        """What becomes of a job: its process is ended by a cancel, the time limit, or the end."""
        context = _context()
        ours, theirs = context.Pipe()
        name = self._shelf.entry(record["model"]).name
        order = Order(name, record["request"], self._audits / record["id"])
        process = context.Process(target=work_on, args=(theirs, order), daemon=True)  # type: ignore[attr-defined]
        process.start()
        theirs.close()
        begun = monotonic()
        try:
            while True:
                if self._closing.is_set():
                    return {"state": "queued"}
                if running.cancelled.is_set():
                    return {"state": "cancelled", "ended": time()}
                if monotonic() - begun > self._limits.job_seconds:
                    says = f"it took longer than {self._limits.job_seconds:g} seconds"
                    return {"state": "failed", "ended": time(), "error": says}
                if (found := _received(ours, running)) is not None:
                    return {"ended": time(), **found}
        finally:
            ours.close()
            process.terminate()
            process.join(GRACE)
            if process.is_alive():
                process.kill()
                process.join(GRACE)


def _received(connection: Connection, running: Running) -> Record | None:
    """Take what a process sends; returns how it ended, once it has."""
    if not connection.poll(LOOK):
        return None
    try:
        kind, content = connection.recv()
    except (EOFError, OSError):
        return {"state": "failed", "error": "its process ended unexpectedly"}
    if kind == "step":
        running.progress = content
    elif kind == "point" and len(running.points) < MOST_POINTS:
        running.points.append(content)
    elif kind == "done":
        return {"state": "done", "result": content}
    elif kind == "failed":
        return {"state": "failed", "error": content}
    return None


def _context() -> BaseContext:
    """Processes that start at once, as copies of one that has imported everything already."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["attlas.serving.jobs.child"])
    return context


def warm_up() -> None:
    """Start what processes are copied from, so that the first job need not wait for it."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        from multiprocessing import forkserver

        _context()
        forkserver.ensure_running()


def _title(given: AnyJob) -> str:
    """What a job is, in a few words for a list."""
    if isinstance(given, PruneJob):
        return f"heads switched off by {given.by}, on {given.data}"
    if isinstance(given, AuditJob):
        return f"quick audit of {given.model} on {given.data or f'{len(given.texts or ())} texts'}"
    shown = given.input.text or "a picture"
    cut = shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 1]}…"
    what = "another attention" if given.job == "adversary" else "the same output"
    return f"{what}: {cut}"
