"""The result of scoring: how well methods do on models of known truth."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from attlas.mathematics.intervals import LEVEL, Estimate
from attlas.scoring.benches import BENCHES

READING = (
    "Special tokens are in no ranking. For known truth the scores of signed methods count by their "
    "size; for plausibility the label people gave is explained and signs count. Ties are worth "
    "their mean over every order. Intervals: 95 %, bootstrap over inputs."
)


@dataclass(frozen=True)
class Score:
    """The figures of one method on one model, or the reason why there are none."""

    model: str
    method: str
    figures: Mapping[str, Estimate] | None
    reason: str | None = None


@dataclass(frozen=True)
class Scores:
    """The scores of methods on models; `control` is the method that gives random scores."""

    scores: tuple[Score, ...]
    control: str
    seed: int

    @property
    def models(self) -> list[str]:
        """The models, in order."""
        return list(dict.fromkeys(each.model for each in self.scores))

    @property
    def methods(self) -> list[str]:
        """The methods, in order, the control last."""
        return list(dict.fromkeys(each.method for each in self.scores))

    def of(self, model: str, method: str) -> Score:
        """The score of one method on one model."""
        found = {(each.model, each.method): each for each in self.scores}
        return found[model, method]

    def payload(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "kind": "method scores",
            "version": 1,
            "reading": READING,
            "level": LEVEL,
            "control": self.control,
            "seed": self.seed,
            "models": {
                name: {"kind": BENCHES[name].kind, "about": BENCHES[name].about}
                for name in self.models
            },
            "scores": [asdict(each) for each in self.scores],
        }
