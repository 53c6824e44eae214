"""The file of jobs: what was asked, how it ended and what was found, kept across restarts."""

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from attlas.errors import ResultFileError, first_line
from attlas.results.support.tables import make_folder

_TABLE = """
create table if not exists jobs (
  number integer primary key autoincrement,
  id text not null unique,
  job text not null,
  model text not null,
  title text not null,
  state text not null,
  created real not null,
  ended real,
  request text not null,
  error text,
  points text not null default '[]',
  result text
)
"""
_LINE = "id, job, model, title, state, created, ended, request, error"
_JSON = ("request", "points", "result")
FILE = "jobs.sqlite"
Record = dict[str, Any]


class JobStore:
    """Jobs in one SQLite file; every change is on disk when its call returns."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(folder / FILE, check_same_thread=False, timeout=30)
            self._connection.row_factory = sqlite3.Row
            with self._lock, self._connection:
                self._connection.execute("pragma journal_mode=wal")
                self._connection.execute(_TABLE)
            self._rows(f"select {_LINE}, points, result from jobs", [])
        except (sqlite3.Error, ValueError, RecursionError) as problem:
            reason = f"{first_line(problem)}; use another folder (--keep), or remove it"
            raise ResultFileError(f"{str(folder / FILE)!r} cannot be read: {reason}") from problem

    def add(self, record: Record) -> None:
        """Keep a new job."""
        names = ", ".join(record)
        marks = ", ".join("?" for _ in record)
        self._change(f"insert into jobs ({names}) values ({marks})", _values(record))

    def change(self, number: str, **fields: Any) -> None:
        """Change fields of a job."""
        names = ", ".join(f"{name} = ?" for name in fields)
        self._change(f"update jobs set {names} where id = ?", [*_values(fields), number])

    def remove(self, number: str) -> None:
        """Forget a job."""
        self._change("delete from jobs where id = ?", [number])

    def wait_again(self) -> None:
        """Put what was running when the server ended back into the queue."""
        self._change("update jobs set state = 'queued' where state = 'running'", [])

    def find(self, number: str) -> Record | None:
        """One job with all that is known; None if there is none."""
        rows = self._rows("select * from jobs where id = ?", [number])
        return rows[0] if rows else None

    def lines(self) -> list[Record]:
        """All jobs, the newest first, without points and results."""
        return self._rows(f"select {_LINE} from jobs order by number desc", [])

    def waiting(self) -> list[str]:
        """The jobs in the queue, the oldest first."""
        query = "select id from jobs where state = 'queued' order by number"
        return [row["id"] for row in self._rows(query, [])]

    def counts(self) -> dict[str, int]:
        """How many jobs wait and run."""
        rows = self._rows("select state, count(*) as count from jobs group by state", [])
        known = {row["state"]: row["count"] for row in rows}
        return {state: known.get(state, 0) for state in ("queued", "running")}

    def same(self, request: Record) -> Record | None:
        """The newest job with this request that is done, runs or waits."""
        query = (
            f"select {_LINE} from jobs where request = ? and state in ('done', 'running', 'queued')"
            " order by number desc limit 1"
        )
        rows = self._rows(query, _values({"request": request}))
        return rows[0] if rows else None

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _change(self, query: str, values: list[Any]) -> None:
        with self._lock, self._connection:
            self._connection.execute(query, values)

    def _rows(self, query: str, values: list[Any]) -> list[Record]:
        with self._lock, closing(self._connection.execute(query, values)) as found:
            return [_record(row) for row in found]


def _values(fields: Record) -> list[Any]:
    return [
        json.dumps(value, sort_keys=True) if name in _JSON and value is not None else value
        for name, value in fields.items()
    ]


def _record(row: sqlite3.Row) -> Record:
    known = {name: row[name] for name in row.keys() if name != "number"}  # noqa: SIM118
    for name in _JSON:
        if isinstance(known.get(name), str):
            known[name] = json.loads(known[name])
    return known
