"""AttnLRP: propagate relevance from the target back to the tokens, operation by operation.

Achtibat, Hatefi, Dreyer, Jain, Wiegand, Lapuschkin and Samek, "AttnLRP: Attention-Aware Layer-Wise
Relevance Propagation for Transformers", ICML 2024.
"""

from attlas.errors import UnknownNameError
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.models.relevance.gradient_rules import AttnRules, ConservativeRules
from attlas.models.relevance.passes import check_conservation, token_relevance

VARIANTS = {"attn": AttnRules, "cp": ConservativeRules}
# Where the part of the logit is that no token has.
RESTS = {"attn": "lost to biases and the softmax", "cp": "lost to biases"}


@method(
    family="P",
    signed=True,
    of="logit",
    paper="arXiv:2402.05602",
    reading="How much the token adds to the target, or takes from it if negative.",
    needs=("embeddings",),
    fills=True,
    learns=True,
    passes=1,
)
def attn_lrp(question: Question, *, variant: str = "attn") -> Scored:
    """Score each token by the relevance that layer-wise propagation assigns to its vector.

    What the model adds to a token's vector, such as the vector of its position, counts as part of
    the token. `variant="cp"` propagates no relevance through the softmax of attention or through
    gates; then the scores and the share of the biases add up to the logit.
    """
    if variant not in VARIANTS:
        raise UnknownNameError("variant", variant, VARIANTS)
    check_conservation(question.subject)
    scores = token_relevance(question, VARIANTS[variant])
    return Scored(scores, row_details=[{"rest_of": RESTS[variant]} for _ in scores])
