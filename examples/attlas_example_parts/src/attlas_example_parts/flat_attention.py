"""Flat attention: every head of every layer looks at all tokens alike."""

from collections.abc import Sequence

import numpy as np

from attlas.models.tap import edits
from attlas.registering import Question, Scope, TrialOutcome, trial
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.support.outputs import distributions, total_variation


@trial(
    cost="cheap",
    paper="arXiv:1908.04626",
    reading="How far does the answer move when all attention is uniform?",
    does_not_show="That the weights explain the answer: it may need any weights but uniform ones.",
    needs=("attention",),
)
def flat_attention(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
) -> TrialOutcome:
    """Make all attention uniform at once; the scope and the seed are not used."""
    moved = np.concatenate([distances(question) for question in questions])
    mean = float(moved.mean())
    reading = "0: the answer stays. 1: it moves as far as it can."
    bars = plots.bars("Flat attention", {"mean": mean}, x_label="difference", reading=reading)
    return TrialOutcome(
        figures={"difference": moved},
        texts=tuple(number for question in questions for number in question.order),
        sentence=f"Uniform attention in all layers moves the answer by {mean:.2f} on average.",
        ceilings={"difference": 1.0},
        plots=(bars,),
    )


def distances(question: Question) -> TextValues:
    """How far the answer to each row moves, by total variation."""
    own = distributions(question)
    with question.subject.tap(edits.uniform()):
        flat = distributions(question)
    return total_variation(own, flat).cpu().numpy()
