"""What the verdict rests on: for each text, what is found where, and which way it pulls."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from attlas.auditing.plan import AuditPlan
from attlas.auditing.work.explained import CONTROLS, WEIGHTS, Explained, ExplainedText
from attlas.errors import AttlasError
from attlas.mathematics.token_effects import capture
from attlas.measures import MEASURES, Case
from attlas.measures.support.walks import effects_of, walks
from attlas.models.asking.filling import fill
from attlas.removing.erasures import Erasures
from attlas.trials import shuffled_moves

WHERE = ("text", "removal", "kind", "name", "value")
LOCATION, DIRECTION, BEST = "location", "direction", "best"
IMPORTANCE, PULL, MOVED, LABEL = "importance", "pull", "moved", "label"
REPEATS = 5  # of the shuffled attention
_Row = tuple[int, str, str, str, float]


def where_rows(text: ExplainedText, how: str, erasures: Erasures) -> Iterator[_Row]:
    """The location of every score, of the best order, and how much there is to find."""
    case = Case(np.zeros(len(text.content)), text.seed, pairs=text.pairs)
    outcomes = erasures.of(text.index, walks(case))
    effects = effects_of(case, outcomes)
    importance, pull = effects.importance, np.nan_to_num(effects.pull)
    named = {name: each for name, each in text.scores.items() if name not in CONTROLS}
    for name, scores in {**named, **text.verdict}.items():
        yield text.number, how, LOCATION, name, capture(scores, importance)
    yield text.number, how, BEST, "", effects.best_capture
    yield text.number, how, IMPORTANCE, "", float(np.nansum(importance))
    yield text.number, how, PULL, "", float(np.abs(pull).sum())
    shares: dict[str, Any] = {name: text.verdict[name] for name in WEIGHTS if name in text.verdict}
    for name, scores in {**shares, "": np.ones(len(case))}.items():
        weights = Case(scores, text.seed, signed=False, pairs=text.pairs)
        share = MEASURES["direction"].function(weights, outcomes, outcomes)
        yield text.number, how, DIRECTION, name, share


def moved_rows(explained: Explained, plan: AuditPlan) -> Iterator[_Row]:
    """How far the answer to each text moves if its attention is shuffled, if that is possible."""
    for text in explained.texts:
        yield text.number, "", LABEL, text.question.targets[0].name, 1.0
    try:
        moved = shuffled_moves(fill(explained.questions), REPEATS, plan.settings.seed)
    except AttlasError:
        return
    for text in explained.texts:
        yield text.number, "", MOVED, "", moved[text.index]
