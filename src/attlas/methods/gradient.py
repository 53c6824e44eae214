"""Gradient: how far the target would move if a token's vector changed a little."""

from attlas.methods.support.method import Scored, method
from attlas.methods.support.vectors import lengths
from attlas.models.asking.question import Question
from attlas.models.states.embeddings import embedding_gradients, over_tokens


@method(
    family="reference",
    signed=False,
    of="logit",
    paper="Simonyan et al. 2013, arXiv:1312.6034; Li et al. 2016, arXiv:1506.01066",
    reading="How far the target would move, up or down, for a small change of the token's vector.",
    needs=("embeddings",),
    many_targets=True,
    fills=True,
    learns=True,
    passes=1,
)
def gradient(question: Question) -> Scored:
    """Score each token by the length of the target's gradient on its embedding.

    A token without an embedding (the class token of an image model) scores zero. A long gradient
    says that the model is sensitive there, not that the token speaks for the target.
    """
    streams, _ = embedding_gradients(question, "logit")
    scores = [(each.start, lengths(each.gradient)) for each in streams]
    return Scored(over_tokens(question.inputs, scores))
