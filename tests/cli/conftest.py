"""The command line as a user calls it."""

import sys

import pytest

from attlas.cli.main import main


@pytest.fixture
def run(monkeypatch, capsys):
    """Call a command; its status, and what it wrote to standard output and to standard error."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["attlas", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        written = capsys.readouterr()
        return stopped.value.code or 0, written.out, written.err

    return call
