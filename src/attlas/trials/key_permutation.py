"""Key permutation: exchange the keys of the tokens and keep their values.

As on the poster "Is Attention Explanation in Transformers?".
"""

from collections.abc import Sequence

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.question import Question
from attlas.models.intervening.keys import exchanges_columns
from attlas.trials.rewriting.effects import run_rewriting_trial
from attlas.trials.rewriting.rewritings import shuffle_keys
from attlas.trials.rewriting.rewritten_answers import RewritingPlan
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial


@trial(
    cost="cheap",
    paper="poster: Is Attention Explanation in Transformers?",
    reading="How far does the answer move when the tokens exchange their keys?",
    does_not_show="That the keys are unimportant: where the ceiling is low nothing could have "
    "moved the answer, and keys exchanged before a rotary embedding would give other weights.",
    needs=("attention", "branches", "values"),
    fills=True,
)
def key_permutation(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    repeats: int = 100,
) -> TrialOutcome:
    """Give the tokens each other's keys, in one order for all rows and heads of a layer.

    The keys are those that are multiplied with the queries, after a rotary embedding. Exchanging
    them is the same as exchanging columns of the attention, and that is what is done; a causal row
    exchanges only the keys that it sees. Models that add a position bias to the scores are refused.
    """
    if repeats < 1:
        raise UsageError(f"repeats are at least 1, not {repeats}")
    check_no_bias(questions[0], scope)
    plan = RewritingPlan("key_permutation", shuffle_keys, repeats, seed)
    return run_rewriting_trial(questions, scope, plan, "Exchanging the keys of the attention")


def check_no_bias(question: Question, scope: Scope) -> None:
    """Refuse a model in which exchanging keys does more than exchange columns of the attention."""
    name = question.subject.name
    found = exchanges_columns(question.subject, question.inputs.rows([0]))
    for site in scope.sites(question.subject):
        if site.name not in found:
            raise UnsupportedModelError(
                f"the keys of {name} cannot be read at {site.name}, so it is unknown whether "
                "exchanging them only exchanges columns of its attention"
            )
        if not found[site.name]:
            raise UnsupportedModelError(
                f"{name} adds a position bias to its scores at {site.name}: exchanging keys "
                "would do more than exchange columns of its attention"
            )
