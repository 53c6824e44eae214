"""Permutation: shuffle the attention weights and keep the values; does the answer stay?

Jain and Wallace, "Attention is not Explanation", NAACL 2019.
"""

from collections.abc import Mapping, Sequence

from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking.question import Question
from attlas.trials.rewriting import rewritings as rewriting
from attlas.trials.rewriting.effects import run_rewriting_trial
from attlas.trials.rewriting.rewritten_answers import RewritingPlan
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial

OF = {
    "columns": (rewriting.shuffle_columns, rewriting.shuffle_columns_of_all_heads),
    "rows": (rewriting.shuffle_rows, rewriting.shuffle_rows_of_all_heads),
}


@trial(
    cost="cheap",
    paper="arXiv:1902.10186",
    reading="How far does the answer move when the weights are shuffled among the tokens?",
    does_not_show="That the weights are wrong: the answer may stay under other weights all the "
    "same, and where the ceiling is low nothing could have moved it.",
    needs=("attention", "branches"),
)
def permutation(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    repeats: int = 100,
    of: str = "columns",
    per_head: bool = True,
    gold: Mapping[int, int] | None = None,
) -> TrialOutcome:
    """Shuffle the weights of each row among its keys, or the rows among the queries.

    `of` is `columns` or `rows`. `per_head` draws an order for each head; else all heads share one.
    `gold` holds the number of the right class of each text, for figures of accuracy.
    """
    if of not in OF:
        raise UnknownNameError("permutation", of, OF)
    if repeats < 1:
        raise UsageError(f"repeats are at least 1, not {repeats}")
    apart, together = OF[of]
    plan = RewritingPlan(
        f"permutation of {of}", apart if per_head else together, repeats, seed, gold
    )
    doing = f"Shuffling the {'weights' if of == 'columns' else 'rows'} of the attention"
    return run_rewriting_trial(questions, scope, plan, doing)
