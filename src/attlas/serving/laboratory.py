"""The laboratory: the models, the threads that ask them, and the jobs, for one server."""

from attlas.serving.jobs.board import JobBoard
from attlas.serving.settings import Settings
from attlas.serving.shelf import Shelf
from attlas.serving.workers import Workers


class Laboratory:
    """Everything that answers requests."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.shelf = Shelf(settings.models)
        self.workers = Workers(settings.limits)
        self.jobs = JobBoard(settings, self.shelf)

    def start(self) -> None:
        """Begin what is waiting."""
        self.jobs.start()

    def close(self) -> None:
        """Stop all work; jobs that are not done go on at the next start."""
        self.jobs.close()
        self.workers.close()
