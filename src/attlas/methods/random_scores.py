"""Random scores: every explanation should do better than these."""

from zlib import crc32

import torch

from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question


@method(
    family="reference",
    signed=False,
    of=None,
    paper="",
    reading="Nothing: these numbers are random.",
    many_targets=True,
    passes=1,
)
def random_scores(question: Question, *, seed: int = 0) -> Scored:
    """Score each token by a random number between zero and one.

    The same `seed` and the same tokens give the same scores, alone or in a batch.
    """
    targets = len(question) // len(question.inputs)
    rows = []
    for tokens in question.inputs.tokens:
        own = seed ^ crc32("\0".join(tokens).encode("utf-8", "surrogatepass"))
        generator = torch.Generator().manual_seed(own)
        rows.append(torch.rand(targets, len(tokens), generator=generator))
    return Scored(torch.cat(rows))
