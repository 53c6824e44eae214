"""How far long work is, told to whoever watches; if nobody does, on standard error."""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from shutil import get_terminal_size
from time import monotonic, sleep
from typing import Any, TextIO

from rich.cells import set_cell_size

FIRST = 0.5  # seconds of silence before the first sign; starting Python is silent too
WIDTH = 78  # columns of a line that grows
TICK = 0.1  # seconds between two looks at the lines
REST = 2.0  # seconds without any line, after which nobody looks


@dataclass(frozen=True)
class Step:
    """What is being done, how far it is, and about how many seconds are left, if that is known."""

    what: str
    done: int
    total: int
    left: float | None = None


Watch = Callable[[Step], None]
Tell = Callable[[str], None]


def silent(_: str) -> None:
    """Tell nobody."""


def printable(line: str) -> str:
    """A line without signs that a terminal would obey, such as escapes, or cannot write."""
    return "".join(sign if sign.isprintable() else "·" for sign in line)


def duration(seconds: float) -> str:
    """A number of seconds in words."""
    if seconds >= 5400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


@contextmanager
def watched(watch: Watch | None, what: str) -> Iterator[Watch]:
    """Who watches this work: `watch`, or, if that is None, a line on standard error.

    Work within work that is shown already goes on in the same line.
    """
    outer = _SHOWN.get()
    if watch is not None:
        yield watch
    elif outer is not None:
        with outer.named(what):
            yield outer.take
    else:
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        line = _RewrittenLine(what) if is_terminal else _GrowingLine(what)
        with _showing(line), line.beating():
            yield line.take


def unseen() -> AbstractContextManager[None]:
    """Show nothing of the work within the block, where others write on standard error."""
    return _showing(_Line(""))


def hush() -> None:
    """End the line on standard error until there is a new step, so that others can write."""
    if line := _SHOWN.get():
        line.end()


def say(line: str) -> None:
    """Write a line of its own on standard error."""
    hush()
    _write(sys.stderr, f"{printable(line)}\n")


def _write(stream: Any, text: str) -> None:
    with suppress(OSError, ValueError):  # nobody reads standard error any more
        if stream is not None and text:
            stream.write(text)
            stream.flush()


class _Line:
    """A line on standard error that shows from time to time that work goes on."""

    every = 1.0  # seconds between two signs

    def __init__(self, what: str) -> None:
        self.what = what
        self.step: Step | None = None
        self.begun = monotonic()
        self._stream: TextIO | None = sys.stderr
        self._ended = False
        self._next = self.begun  # when the next sign is due
        self._lock = threading.Lock()

    def take(self, step: Step) -> None:
        """Show this step from now on."""
        with self._lock:
            self.step, self._ended = step, False

    @contextmanager
    def named(self, what: str) -> Iterator[None]:
        """Show this work within the block."""
        before = self.what, self.step
        with self._lock:
            self.what, self.step, self._ended = what, None, False
        try:
            yield
        finally:
            with self._lock:
                self.what, self.step = before

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Give a sign again and again within the block."""
        self._next = self.begun + FIRST
        _HEART.add(self)
        try:
            yield
        finally:
            _HEART.remove(self)
            self.end()

    def beat(self) -> None:
        """Give a sign if it is time for one."""
        with self._lock:
            now = monotonic()  # which is long before the last sign if the clock was set back
            if not self._next - 2 * max(self.every, FIRST) <= now < self._next:
                self._next = now + self.every
                if not self._ended:
                    _write(self._stream, self.sign())

    def end(self) -> None:
        """Leave the line."""
        with self._lock:
            self._ended = True
            _write(self._stream, self.farewell())

    def sign(self) -> str:
        """What shows that work goes on: nothing."""
        return ""

    farewell = sign  # what makes room for other lines


@contextmanager
def _showing(line: _Line) -> Iterator[None]:
    token = _SHOWN.set(line)
    try:
        yield
    finally:
        _SHOWN.reset(token)


class _RewrittenLine(_Line):
    """A line of a terminal: the step, how far it is and the seconds; gone when the work is done."""

    every = 0.5
    _is_open = False

    def sign(self) -> str:
        self._is_open = True
        parts = [self.what if self.step is None else self.step.what]
        if self.step is not None and self.step.total:
            parts.append(f"{100 * self.step.done / self.step.total:.0f} %")
        if self.step is not None and self.step.left is not None:
            parts.append(f"about {duration(self.step.left)} left")
        parts.append(f"{max(0.0, monotonic() - self.begun):.0f} s")
        line = printable("  ".join(parts))
        return f"\r\x1b[K{set_cell_size(line, get_terminal_size().columns - 1).rstrip()}"

    def farewell(self) -> str:
        was_open, self._is_open = self._is_open, False
        return "\r\x1b[K" if was_open else ""


class _GrowingLine(_Line):
    """A line of a file or a pipe: what is done, then per cent, or a dot if there is no news."""

    _told: tuple[str, ...] = ()
    _has_told_length = False
    _has_told_news = False  # so that there is a space already
    _column = 0

    def sign(self) -> str:
        before, self._told = self._told, tuple(self._known())
        news = [each for each in self._told if each not in before]
        space = "" if self._has_told_news else " "
        mark = f"{space}{' '.join(news)} " if news else "."
        self._has_told_news = bool(news)
        start = "" if self._column else f"attlas:{'' if news else ' '}"
        if self._column and self._column + len(mark) > WIDTH:
            start, mark, self._column = "\n", f"  {mark.lstrip()}", -1
        self._column += len(start) + len(mark)
        return f"{start}{mark}"

    def _known(self) -> Iterator[str]:
        if self.what:
            yield printable(self.what)
        if self.step is not None and self.step.left is not None and not self._has_told_length:
            self._has_told_length = True
            yield f"about {duration(self.step.left)}"
        if self.step is not None and self.step.total:
            yield f"{100 * self.step.done / self.step.total:.0f}%"

    def farewell(self) -> str:
        was_open, self._column, self._has_told_news = bool(self._column), 0, False
        return "\n" if was_open else ""


class _Heart:
    """The thread in which all lines give their signs: one for each costs more than short work."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Have no line and no thread; a process that was forked off has none of its parent's."""
        self._lines: list[_Line] = []
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, line: _Line) -> None:
        """Look after a line from now on."""
        with self._lock:
            self._lines.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, daemon=True)
                self._thread.start()

    def remove(self, line: _Line) -> None:
        """Look after a line no longer."""
        with self._lock:
            self._lines.remove(line)

    def _beat(self) -> None:
        used = monotonic()
        while True:
            try:
                sleep(TICK)
            except OSError:  # its end is a time that a changed clock does not have
                threading.Event().wait(TICK)
            with self._lock:
                lines = list(self._lines)
                if not lines and monotonic() - used > REST:
                    self._thread = None
                    return
            for line in lines:
                used = monotonic()
                line.beat()


_HEART = _Heart()
os.register_at_fork(after_in_child=_HEART.begin)
_SHOWN: ContextVar[_Line | None] = ContextVar("the line on standard error", default=None)


# The libraries that torch loads after it has asked for a module: see `_load_global_deps` there.
_OPEN_TO_ALL = "libtorch_global_deps.so"
_LIBRARIES = {"torch._utils_internal": _OPEN_TO_ALL, "torch._C": "libtorch.so"}


class _BeforeTorch:
    """Loads what torch is about to load, so that lines give their signs meanwhile.

    Importing torch holds Python's lock while hundreds of megabytes are read and linked, on a cold
    disk for a second or more. A function of C that is called by ctypes holds no lock.
    """

    def find_spec(self, fullname: str, path: Iterable[str] | None, *_: Any) -> None:
        """Load a library in torch's own way; leave finding modules to the others."""
        if name := _LIBRARIES.get(fullname):
            to_all = os.RTLD_NOW | os.RTLD_GLOBAL
            load_library(path or (), name, to_all if name == _OPEN_TO_ALL else sys.getdlopenflags())


def load_library(places: Iterable[str], name: str, how: int) -> bool:
    """Load a library of torch, if that can be done; if it cannot, importing torch says why."""
    import ctypes

    c_open = ctypes.CDLL(None).dlopen
    c_open.argtypes, c_open.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    return any(c_open(os.fsencode(os.path.join(place, "lib", name)), how) for place in places)


if sys.platform == "linux" and "torch" not in sys.modules:
    sys.meta_path.insert(0, _BeforeTorch())
