"""Key permutation: the key vectors in another order along the text, the values as they are.

As on the poster "Is Attention Explanation in Transformers?".
"""

from collections.abc import Sequence

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.question import Question
from attlas.models.intervening.keys import exchanges_columns
from attlas.trials.rewriting.effects import try_plan
from attlas.trials.rewriting.rewritings import shuffle_keys
from attlas.trials.rewriting.rewritten_answers import RewritingPlan
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, trial


@trial(
    cost="cheap",
    paper="poster: Is Attention Explanation in Transformers?",
    reading="How far does the answer move when the tokens exchange their keys?",
    does_not_show="That an answer stays says nothing where the ceiling is low; and keys that were "
    "exchanged before their rotation, or beside a bias of position, would give other weights.",
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

    Keys are those that are multiplied with the queries: after a rotary embedding. Their exchange
    moves the columns of the attention, so that is what is done; a causal row exchanges those that
    it sees. Models that add a bias of position to the scores are refused.
    """
    if repeats < 1:
        raise UsageError(f"repeats are at least 1, not {repeats}")
    check_no_bias(questions[0], scope)
    plan = RewritingPlan("key_permutation", shuffle_keys, repeats, seed)
    return try_plan(questions, scope, plan, "Exchanging the keys of the attention")


def check_no_bias(question: Question, scope: Scope) -> None:
    """An error unless exchanging keys at these sites only exchanges columns."""
    name = question.subject.name
    found = exchanges_columns(question.subject, question.inputs.rows([0]))
    for site in scope.sites(question.subject):
        if site.name not in found:
            raise UnsupportedModelError(
                f"{name} keeps its keys to itself at {site.name}: whether their exchange only "
                "moves columns of its attention cannot be told"
            )
        if not found[site.name]:
            raise UnsupportedModelError(
                f"{name} adds a bias of position to its scores at {site.name}: exchanging keys "
                "would not only move columns of its attention"
            )
