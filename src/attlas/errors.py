"""Every error Attlas raises on purpose.

AttlasError
├─ UsageError (also a ValueError)      the request is not possible: the message says what is allowed
│  ├─ UnknownNameError                 an unknown name: the message gives the nearest known one
│  └─ TextTooLongError                 the text has more tokens than the model takes
├─ ModelError                          the model could not be loaded or gives no usable output
│  └─ UnsupportedModelError            the model cannot be opened at its attention
│     └─ NotDefinedError               what was asked has no meaning on such a model
├─ ShortageError (also a MemoryError)  not even one of what is asked fits into memory
└─ ResultFileError                     a saved result is damaged, of another version, or unwritable
"""

import os
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

# In the messages of torch's allocator for the processor, of the system and of its linker.
_SHORTAGES = (
    *("can't allocate memory", "not enough memory"),
    *("annot allocate memory", "failed to map segment"),
)
# Signs that an error shows of a name, of a word and of all that it says.
LONGEST, LONGEST_WORD, LONGEST_LINE = 100, 400, 2000


class AttlasError(Exception):
    """The root: catch this to catch every error of Attlas.

    What others have named may be of any length: its message stays one that can be read.
    """

    def __init__(self, said: object = "") -> None:
        words = (in_short(word, LONGEST_WORD) for word in str(said).split(" "))
        super().__init__(in_short(" ".join(words), LONGEST_LINE))


class UsageError(AttlasError, ValueError):
    """The request is not possible; the message says what was given and what is allowed."""


class UnknownNameError(UsageError):
    """An unknown name; the message gives the nearest known one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = [str(each) for each in known]
        self.kind, self.name, self.known = kind, name, names
        near = nearest(str(name)[:LONGEST], names, 0.4)
        hint = f"did you mean {in_short(near)!r}? " if near else ""
        shown = ", ".join(map(in_short, names[:24]))
        shown += f" and {len(names) - 24} more" if len(names) > 24 else ""
        given = in_short(name) if isinstance(name, str) else name
        super().__init__(f"unknown {kind} {given!r}: {hint}allowed: {shown or 'none'}")


def nearest(name: str, known: Sequence[str], least: float) -> str | None:
    """The known name that is most like this one, if it is alike by this share at least."""
    near = get_close_matches(name.lower(), [each.lower() for each in known], n=1, cutoff=least)
    return next((each for each in known if near and each.lower() == near[0]), None)


def is_shortage(problem: BaseException) -> bool:
    """Whether memory ran out, of Python's, of the processor's or of a device's."""
    is_known = isinstance(problem, MemoryError) or type(problem).__name__ == "OutOfMemoryError"
    return is_known or any(sign in str(problem) for sign in _SHORTAGES)


def in_short(text: str, most: int = LONGEST) -> str:
    """A name or a line of any length, as an error shows it."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def first_line(problem: BaseException) -> str:
    """An error of someone else's in one line: its type, and the first line of what it says."""
    said = in_short(str(problem).strip().split("\n")[0], 300)
    return ": ".join(filter(None, [type(problem).__name__, said]))


def check_whole(what: str, given: Any, least: int = 1, most: int | None = None) -> None:
    """Refuse what is no whole number of at least so much."""
    is_whole = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_whole or given < least or (most is not None and given > most):
        allowed = f"{least} or more" if most is None else f"from {least} to {most}"
        raise UsageError(f"{what}: a whole number, {allowed}, not {in_short(str(given))}")


def refuse_address(path: str | os.PathLike[str]) -> None:
    """Refuse s3://bucket/name where a file or folder of this machine is meant.

    A path keeps one slash of the two, and would be in a folder called `s3:`.
    """
    name = os.fspath(path)
    found = re.match(r"[a-z][a-z0-9+.-]+:(?=/)", name, re.IGNORECASE)
    if found is not None and not os.path.lexists(found[0]):
        address = f"{found[0]}//{name[len(found[0]) :].lstrip('/')}"
        raise UsageError(
            f"{in_short(address)} is an address: this is written to a disk of this machine, from "
            "which it can be copied there"
        )


class TextTooLongError(UsageError):
    """The text has more tokens than the model takes."""


class ModelError(AttlasError):
    """The model could not be loaded, or gives no usable output."""


class UnsupportedModelError(ModelError):
    """The model cannot be opened at its attention; the message says what was found."""

    @classmethod
    def of_failure(cls, model: object, problem: Exception) -> "UnsupportedModelError":
        """What to raise where a model fails by itself: its class, and the problem in one line.

        A Ctrl-C that torch covered with a problem of its own, as `vmap` may, is raised as it was.
        """
        if isinstance(problem.__context__, KeyboardInterrupt):
            raise problem.__context__
        return cls(f"{type(model).__name__} fails on this input: {first_line(problem)}")


class NotDefinedError(UnsupportedModelError):
    """By its definition a method has no meaning on such a model: this is no limit of Attlas."""


class ShortageError(AttlasError, MemoryError):
    """Not even one of what is asked fits into memory; of fewer texts at once it may."""


class ResultFileError(AttlasError):
    """A saved result is damaged, of another version, or cannot be read or written."""
