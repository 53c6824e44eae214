"""The verb `score`: every method on models whose decisive tokens are known."""

from attlas.scoring.benches import BENCHES, Bench
from attlas.scoring.record import Score, Scores
from attlas.scoring.run import score

__all__ = ["BENCHES", "Bench", "Score", "Scores", "score"]
