"""DecompX: the logit as a sum with one term for each token, followed through every layer.

Modarressi et al., "DecompX: Explaining Transformers Decisions by Propagating Token Decomposition",
ACL 2023.
"""

import torch

from attlas.errors import UsageError
from attlas.methods.support.decomposition import aligned_shares, equal_shares, slope
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.models.asking.scores import target_scores_in_graph
from attlas.models.decomposing.term_states import DecompositionRules
from attlas.models.decomposing.token_terms import in_small_batches, tracking_terms
from attlas.shapes import TokenScores

WHOLE_MODEL = DecompositionRules(own=equal_shares, shared=aligned_shares, slope=slope)


@method(
    family="P",
    signed=True,
    of="logit",
    paper="Modarressi et al. 2023, arXiv:2306.02873",
    reading="The token's term of the logit: the terms of all tokens sum to the logit.",
    needs=("attention",),
    cost="expensive",
    many_targets=True,
    fills=True,
    passes=2,
    weighs=lambda question, options: 0.6 * len(question.inputs.tokens[0]),  # a term of each token
    pair_vectors=8,
)
def decompx(question: Question) -> Scored:
    """Score each token by its term of the logit, followed from layer to layer to the output.

    Attention weights and the scales of norms are treated as constants, activations as straight
    lines through the origin. Biases are divided among tokens by how well they align with a token's
    term.
    """
    for target in question.targets:
        if target.quantity("logit") == "log-probability":
            raise UsageError(
                f"decompx decomposes one logit, and the target {target.name!r} has several tokens, "
                "whose probability is no sum of logits: give one token"
            )
    scores = torch.cat([decompose(batch) for batch in in_small_batches(question)])
    bases = [{"base": 0.0, "base_of": "biases are divided among the tokens"} for _ in scores]
    return Scored(scores, row_details=bases)


def decompose(question: Question) -> TokenScores:
    """The term of each token in the target's logit."""
    with tracking_terms(question, WHOLE_MODEL) as tracker, question.subject.tap():
        scores = target_scores_in_graph(question, "logit")
        return tracker.read(scores, "the output", lambda terms: terms)[:-1].T
