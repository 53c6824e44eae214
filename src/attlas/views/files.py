"""Writing files atomically."""

import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from attlas.errors import ResultFileError, refuse_address

_DRAFT = re.compile(r"\.attlas-[0-9a-f]{16}")


def write_whole(path: str | os.PathLike[str], data: str | bytes) -> Path:
    """Write a file, text as UTF-8, so that no reader ever sees half of it.

    An existing file is replaced at the end; if anything fails, it stays as it was.
    """
    refuse_address(path)
    content = data.encode() if isinstance(data, str) else data
    try:
        # Follow a link as open() does: the link stays, and its target is replaced.
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(content)  # a device or a pipe is written to, and never replaced
        else:
            _replace(target, content)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ResultFileError(f"cannot write {os.fspath(path)!r}: {reason}") from error
    return Path(path)


def _replace(target: Path, content: bytes) -> None:
    draft = target.parent / f".attlas-{secrets.token_hex(8)}"
    try:
        with draft.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if target.is_file():
            shutil.copymode(target, draft)
        os.replace(draft, target)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def forget_drafts(folder: Path) -> None:
    """Delete what `write_whole` was writing in a folder of ours when it was killed."""
    for draft in folder.glob(".attlas-*"):
        if _DRAFT.fullmatch(draft.name) and not draft.is_dir():
            draft.unlink(missing_ok=True)
