"""The log: one JSON object a line on standard error. Texts that people type are not in it."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any


def log(level: str, event: str, *, problem: BaseException | None = None, **facts: Any) -> None:
    """Write one line."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level}
    line |= {"event": event, **facts}
    if problem is not None:
        line["problem"] = "".join(traceback.format_exception(problem))
    text = json.dumps(line, default=str)
    if sys.stderr is not None:
        print(text, file=sys.stderr, flush=True)


class JsonHandler(logging.Handler):
    """Hands what libraries log to the same log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        problem = record.exc_info[1] if record.exc_info else None
        level = record.levelname.lower()
        log(level, record.getMessage(), problem=problem, logger=record.name)
