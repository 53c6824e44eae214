"""The verb `score`: every method held to models of which it is known what they rely on."""

from attlas.scoring.benches import BENCHES, Bench
from attlas.scoring.record import Score, Scores
from attlas.scoring.run import Progress, score

__all__ = ["BENCHES", "Bench", "Progress", "Score", "Scores", "score"]
