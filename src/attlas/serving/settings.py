"""What the operator decides: where to listen, who may ask, and how much."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

PORT = 8765
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class Limits:
    """How much one request, and all of them together, may take."""

    characters: int = 2000
    bytes: int = 2_000_000
    workers: int = 2
    queue: int = 64
    seconds: int | float = 60
    jobs: int = 1
    job_queue: int = 16
    job_seconds: int | float = 3600

    def to_dict(self) -> dict[str, int | float]:
        """The limits as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Settings:
    """Everything that the operator decides; `token` is None where nobody else can reach it."""

    keep: Path
    models: tuple[str, ...] = ()  # none: those that come with Attlas
    host: str = LOOPBACK[0]
    port: int = PORT
    token: str | None = None
    names: tuple[str, ...] = ()  # more names by which browsers may reach the page
    limits: Limits = field(default_factory=Limits)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK

    def with_token(self, token: str) -> "Settings":
        """The same, with a token that every request must carry."""
        return replace(self, token=token)
