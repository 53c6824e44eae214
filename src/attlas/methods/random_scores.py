"""Random scores: what any explanation has to beat."""

from zlib import crc32

import torch

from attlas.methods.method import Scored, method
from attlas.models.question import Question


@method(
    family="reference",
    signed=False,
    of=None,
    paper="",
    reading="Nothing: these numbers are drawn at random.",
)
def random_scores(question: Question, *, seed: int = 0) -> Scored:
    """Score each token by a number drawn evenly between zero and one.

    The same seed and the same tokens give the same scores, alone or in a batch.
    """
    rows = []
    for tokens in question.inputs.tokens:
        own = seed ^ crc32("\0".join(tokens).encode("utf-8", "surrogatepass"))
        rows.append(torch.rand(len(tokens), generator=torch.Generator().manual_seed(own)))
    return Scored(torch.stack(rows))
