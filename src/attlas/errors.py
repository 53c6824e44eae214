"""Every error Attlas raises on purpose.

AttlasError
├─ UsageError (also a ValueError)      the request is not possible: the message says what is allowed
│  ├─ UnknownNameError                 an unknown name: the message gives the nearest known one
│  └─ TextTooLongError                 the text has more tokens than the model takes
├─ ModelError                          the model could not be loaded or gives no usable output
│  └─ UnsupportedModelError            the model cannot be opened at its attention
│     └─ NotDefinedError               what was asked has no meaning on such a model
└─ ResultFileError                     a saved result is damaged, of another version, or unwritable
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class AttlasError(Exception):
    """The root: catch this to catch every error of Attlas."""


class UsageError(AttlasError, ValueError):
    """The request is not possible; the message says what was given and what is allowed."""


class UnknownNameError(UsageError):
    """An unknown name; the message gives the nearest known one."""

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        names = [str(each) for each in known]
        self.kind, self.name, self.known = kind, name, names
        near = nearest(str(name), names, 0.4)
        hint = f"did you mean {near!r}? " if near else ""
        shown = ", ".join(names[:24]) + (f" and {len(names) - 24} more" if len(names) > 24 else "")
        super().__init__(f"unknown {kind} {name!r}: {hint}allowed: {shown or 'none'}")


def nearest(name: str, known: Sequence[str], least: float) -> str | None:
    """The known name that is most like this one, if it is alike by this share at least."""
    near = get_close_matches(name.lower(), [each.lower() for each in known], n=1, cutoff=least)
    return next((each for each in known if near and each.lower() == near[0]), None)


def first_line(problem: Exception) -> str:
    """An error of someone else's in one line: its type, and the first line of what it says."""
    said = str(problem).strip().split("\n")[0]
    return ": ".join(filter(None, [type(problem).__name__, said]))


class TextTooLongError(UsageError):
    """The text has more tokens than the model takes."""


class ModelError(AttlasError):
    """The model could not be loaded, or gives no usable output."""


class UnsupportedModelError(ModelError):
    """The model cannot be opened at its attention; the message says what was found."""

    @classmethod
    def of_failure(cls, model: object, problem: Exception) -> "UnsupportedModelError":
        """What to raise where a model fails by itself: its class, and the problem in one line."""
        return cls(f"{type(model).__name__} fails on this input: {first_line(problem)}")


class NotDefinedError(UnsupportedModelError):
    """By its definition a method has no meaning on such a model: this is no limit of Attlas."""


class ResultFileError(AttlasError):
    """A saved result is damaged, of another version, or cannot be read or written."""
