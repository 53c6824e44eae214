"""AttnLRP: relevance carried from the target back to the tokens, operation by operation.

Achtibat, Hatefi, Dreyer, Jain, Wiegand, Lapuschkin and Samek, "AttnLRP: Attention-Aware Layer-Wise
Relevance Propagation for Transformers", ICML 2024.
"""

from attlas.errors import UnknownNameError
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.models.relevance.gradient_rules import AttnRules, ConservativeRules
from attlas.models.relevance.passes import check_conservation, token_relevance

VARIANTS = {"attn": AttnRules, "cp": ConservativeRules}


@method(
    family="P",
    signed=True,
    of="logit",
    paper="arXiv:2402.05602",
    reading="How much of the target's logit is owed to the token, or is against it if negative.",
    needs=("embeddings",),
    fills=True,
)
def attn_lrp(question: Question, *, variant: str = "attn") -> Scored:
    """Score each token by the relevance that layer-wise propagation carries back to its vector.

    What is added to a token's vector on its way in, as its position's, counts to the token.
    `variant="cp"` lets no relevance through the softmax of attention and through gates: then what
    biases do not take adds up to the logit.
    """
    if variant not in VARIANTS:
        raise UnknownNameError("variant", variant, VARIANTS)
    check_conservation(question.subject)
    return Scored(token_relevance(question, VARIANTS[variant]))
