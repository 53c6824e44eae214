"""Uniform attention: give every key the same weight and keep the values; does the answer stay?

After Wiegreffe and Pinter, "Attention is not not Explanation", EMNLP 2019, without their training.
"""

from collections.abc import Mapping, Sequence

from attlas.models.asking.question import Question
from attlas.trials.rewriting.effects import run_rewriting_trial
from attlas.trials.rewriting.rewritings import spread_evenly
from attlas.trials.rewriting.rewritten_answers import RewritingPlan
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial


@trial(
    cost="cheap",
    paper="arXiv:1908.04626",
    reading="How far does the answer move when all tokens get the same weight?",
    does_not_show="That the task needs attention: a model trained with uniform attention might do "
    "as well. This says only whether the model as it is uses its weights.",
    needs=("attention", "branches"),
    fills=True,
)
def uniform(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    gold: Mapping[int, int] | None = None,
) -> TrialOutcome:
    """Spread the weight of each row evenly over the keys that may change.

    `gold` holds the number of the right class of each text, for figures of accuracy. Nothing is
    random: the `seed` has no effect.
    """
    plan = RewritingPlan("uniform", spread_evenly, 1, seed, gold)
    return run_rewriting_trial(questions, scope, plan, "Spreading the attention evenly")
