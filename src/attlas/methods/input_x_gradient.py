"""Input × gradient: what a token's vector would add to the target if the model were linear."""

from attlas.methods.support.method import Scored, method
from attlas.methods.support.vectors import inner_products
from attlas.models.asking.question import Question
from attlas.models.states.embeddings import embedding_gradients, over_tokens


@method(
    family="reference",
    signed=True,
    of="logit",
    paper="Denil et al. 2014, arXiv:1412.6815; Shrikumar et al. 2016, arXiv:1605.01713",
    reading="How far the token's vector pushes the target up, or down if negative, to first order.",
    needs=("embeddings",),
    many_targets=True,
    fills=True,
    learns=True,
    passes=1,
)
def input_x_gradient(question: Question) -> Scored:
    """Score each token by its embedding times the target's gradient on it, summed over features.

    A token without an embedding (the class token of an image model) scores zero. The score is a
    first-order estimate: it does not say what happens if the token is removed.
    """
    streams, _ = embedding_gradients(question, "logit")
    scores = [(each.start, inner_products(each.values, each.gradient)) for each in streams]
    return Scored(over_tokens(question.inputs, scores))
