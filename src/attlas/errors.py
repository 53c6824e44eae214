"""Every error Attlas raises on purpose.

AttlasError
├─ UsageError (also a ValueError)      what was asked cannot be: the message says what is allowed
│  ├─ UnknownNameError                 a name that is not there, with the nearest that is
│  └─ TextTooLongError                 the text has more tokens than the model takes
├─ ModelError                          the model could not be loaded or does not behave
│  └─ UnsupportedModelError            the model cannot be opened at its attention
└─ ResultFileError                     a saved result is damaged, of another version, or unwritable
"""

from collections.abc import Iterable
from difflib import get_close_matches


class AttlasError(Exception):
    """The root: catch this to catch all of ours."""


class UsageError(AttlasError, ValueError):
    """What was asked cannot be; the message says what was given and what is allowed."""


class UnknownNameError(UsageError):
    """A name that is not there."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = [str(each) for each in known]
        near = get_close_matches(name.lower(), [each.lower() for each in names], n=1, cutoff=0.4)
        nearest = next((each for each in names if near and each.lower() == near[0]), None)
        hint = f"did you mean {nearest!r}? " if nearest else ""
        shown = ", ".join(names[:24]) + (f" and {len(names) - 24} more" if len(names) > 24 else "")
        super().__init__(f"unknown {kind} {name!r}: {hint}allowed: {shown or 'none'}")


class TextTooLongError(UsageError):
    """The text has more tokens than the model takes."""


class ModelError(AttlasError):
    """The model could not be loaded, or does not behave as a model should."""


class UnsupportedModelError(ModelError):
    """The model cannot be opened at its attention; the message says what was found."""


class ResultFileError(AttlasError):
    """A saved result is damaged, of another version, or cannot be read or written."""
