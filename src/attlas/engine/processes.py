"""Processes of this machine in the place of a cluster: what a pool asks of Ray, and no more.

Calls and answers are pickles with their length before them, in the pipes of each process. A process
ends when its pipe does, so none outlives the one that started it.
"""

import gc
import os
import pickle
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import IO, Any

import torch

LENGTH = 8  # bytes that say how long a pickle is


class ProcessEndedError(Exception):
    """A process has ended before it answered."""


class CallFailedError(ProcessEndedError):
    """A call has raised an error that is a mistake of ours."""


class _Answer:
    """What a call will have found."""

    def __init__(self) -> None:
        self.found: Any = None
        self.is_there = False


class Processes:
    """Stands for the module `ray`."""

    exceptions = SimpleNamespace(RayError=ProcessEndedError, RayTaskError=CallFailedError)

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._started: list[_Process] = []

    def nodes(self) -> list[dict[str, Any]]:
        """This machine."""
        has = {"CPU": os.cpu_count() or 1, "GPU": torch.cuda.device_count()}
        return [{"Alive": True, "Resources": has}]

    def remote(self, **_: Any) -> Callable[[type], Any]:
        """A decorator for a class whose instances live in processes of their own."""
        return lambda kind: SimpleNamespace(remote=partial(self._start, kind))

    def _start(self, kind: type, *given: Any) -> "_Process":
        self._started.append(_Process(self._changed, len(self._started), kind, given))
        return self._started[-1]

    def put(self, value: Any) -> Any:
        """What is handed to processes, as it is."""
        return value

    def wait(
        self, answers: Sequence[_Answer], timeout: float | int
    ) -> tuple[list[_Answer], list[_Answer]]:
        """The answers that are there, after so many seconds at the latest, and the others."""
        with self._changed:
            self._changed.wait_for(lambda: any(each.is_there for each in answers), timeout)
            ready = [each for each in answers if each.is_there]
        return ready, [each for each in answers if each not in ready]

    def get(self, answer: _Answer) -> Any:
        """What was found, or the error that was raised."""
        if isinstance(answer.found, ProcessEndedError):
            raise answer.found
        return answer.found

    def kill(self, process: "_Process") -> None:
        """End a process."""
        process.end()

    def shutdown(self) -> None:
        """End all of them."""
        for each in self._started:
            each.end()


class _Process:
    """A process with an instance of a class, whose methods are called from here."""

    def __init__(
        self, changed: threading.Condition, number: int, kind: type, given: tuple[Any, ...]
    ) -> None:
        self._changed, self._answers = changed, dict[int, _Answer]()
        self._count, self._calls = 0, queue.SimpleQueue[bytes | None]()
        self._sign = secrets.token_hex(16)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed when the process is ended
        cards = torch.cuda.device_count()
        one = {"CUDA_VISIBLE_DEVICES": str(number % cards)} if cards > 1 else {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "attlas.engine.processes", self._sign],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **one},
        )
        self._calls.put(pickle.dumps((kind, given)))
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._write, self._read)
        ]
        for each in self._threads:
            each.start()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return SimpleNamespace(remote=partial(self._call, name))

    def _call(self, name: str, *given: Any) -> _Answer:
        answer = _Answer()
        with self._changed:
            self._count += 1
            self._answers[self._count] = answer
        self._calls.put(pickle.dumps((self._count, name, given)))
        if self._process.poll() is not None:
            self._lose()
        return answer

    def _write(self) -> None:
        stream = self._process.stdin
        assert stream is not None
        while (call := self._calls.get()) is not None:
            try:
                _send(stream, call)
            except (OSError, ValueError):  # it has ended, which reading from it tells
                return

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        _skip(stream, self._sign.encode())
        while (told := _receive(stream)) is not None:
            number, found = pickle.loads(told)  # from a process that was started here
            with self._changed:
                answer = self._answers.pop(number)
                answer.found, answer.is_there = found, True
                self._changed.notify_all()
        self._process.wait()
        self._lose()

    def _lose(self) -> None:
        """Answer all calls that are open: the process has ended."""
        problem = ProcessEndedError(self._last_words())
        with self._changed:
            for answer in self._answers.values():
                answer.found, answer.is_there = problem, True
            self._answers.clear()
            self._changed.notify_all()

    def _last_words(self) -> str:
        if self._errors.closed:
            return "it was ended"
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        said = next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")
        return f"a process ended with {self._process.returncode}: {said}"

    def end(self) -> None:
        """End the process, if it has not ended yet."""
        self._calls.put(None)
        self._process.kill()
        self._process.wait()
        for each in self._threads:
            each.join()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            with suppress(OSError):  # what was not written stays so
                stream.close()


def _send(stream: IO[bytes], content: bytes) -> None:
    stream.write(len(content).to_bytes(LENGTH, "big"))
    stream.write(content)
    stream.flush()


def _skip(stream: IO[bytes], sign: bytes) -> None:
    """Read on until this sign: what Python or a library prints as it starts is no answer."""
    seen = b""
    while not seen.endswith(sign) and (one := stream.read(1)):
        seen = seen[-len(sign) :] + one


def _receive(stream: IO[bytes]) -> bytes | None:
    """The next pickle; None if the pipe has ended, or ends within it."""
    length = stream.read(LENGTH)
    if len(length) < LENGTH:
        return None
    content = stream.read(int.from_bytes(length, "big"))
    return content if len(content) == int.from_bytes(length, "big") else None


def main() -> None:
    """Make the instance, and call it as the process says that started this one."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    answers.write(sys.argv[1].encode())
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(calls,), daemon=True).start()
    kind, given = pickle.loads(calls.get())
    worker = kind(*given)
    while True:
        number, name, asked = pickle.loads(calls.get())
        try:
            found = getattr(worker, name)(*asked)
        except Exception:
            found = CallFailedError(traceback.format_exc())
        _send(answers, pickle.dumps((number, found)))
        if name == "open":
            gc.freeze()  # what is loaded by now stays: to look through it again takes long


def _listen(calls: "queue.SimpleQueue[bytes]") -> None:
    while (told := _receive(sys.stdin.buffer)) is not None:
        calls.put(told)
    os._exit(1)


if __name__ == "__main__":
    main()
