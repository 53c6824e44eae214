"""The board of jobs: who waits, who runs, and what was found."""

from attlas.serving.settings import Settings
from attlas.serving.shelf import Shelf


class JobBoard:
    """All jobs of one server."""

    def __init__(self, settings: Settings, shelf: Shelf) -> None:
        self._settings, self._shelf = settings, shelf

    def counts(self) -> dict[str, int]:
        """How many jobs wait and run."""
        return {"queued": 0, "running": 0}

    def start(self) -> None:
        """Begin what is waiting."""

    def close(self) -> None:
        """Stop."""
