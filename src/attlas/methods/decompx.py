"""DecompX: the logit as a sum of parts, one for each token, followed through every layer.

Modarressi et al., "DecompX: Explaining Transformers Decisions by Propagating Token Decomposition",
ACL 2023.
"""

import torch

from attlas.errors import UsageError
from attlas.methods.support.decomposition import aligned, present, slope
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.models.asking.scores import target_scores_in_graph
from attlas.models.decomposing.term_states import DecompositionRules
from attlas.models.decomposing.token_terms import in_small_batches, tracking_terms
from attlas.shapes import TokenScores

WHOLE_MODEL = DecompositionRules(own=present, shared=aligned, slope=slope)


@method(
    family="P",
    signed=True,
    of="logit",
    paper="Modarressi et al. 2023, arXiv:2306.02873",
    reading="The token's part of the logit: the parts of all tokens sum to it.",
    needs=("attention",),
    cost="expensive",
    many_targets=True,
    fills=True,
)
def decompx(question: Question) -> Scored:
    """Score each token by its part of the logit, followed from layer to layer to the output.

    Attention weights and the spreads of norms are taken as they are, activations as straight lines
    through the origin, and biases are shared out by how far they point along the part of a token.
    """
    for target in question.targets:
        if target.quantity("logit") == "log-probability":
            raise UsageError(
                f"decompx takes a logit apart; the target {target.name!r} is of several tokens, "
                "whose probability is no sum of logits: give one token"
            )
    return Scored(torch.cat([take_apart(part) for part in in_small_batches(question)]))


def take_apart(question: Question) -> TokenScores:
    """The part of each token in the target's logit."""
    with tracking_terms(question, WHOLE_MODEL) as tracker, question.subject.tap():
        scores = target_scores_in_graph(question, "logit")
        return tracker.terms(scores, "the output")[:-1].T
