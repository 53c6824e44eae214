"""GlobEnc: the length of each token's contribution to each layer's output.

Modarressi et al., "GlobEnc: Quantifying Global Token Attribution by Incorporating the Whole Encoder
Layer in Transformers", NAACL 2022.
"""

import torch

from attlas.methods.support.decomposition import (
    equal_shares,
    read_scaled_rows,
    scaled_product_of_layers,
    term_lengths,
    weigh_pairs,
)
from attlas.methods.support.method import Scored, method
from attlas.models.asking.question import Question
from attlas.models.asking.reading import find_readout
from attlas.models.asking.scores import run_logits
from attlas.models.decomposing.term_states import DecompositionRules
from attlas.models.decomposing.token_terms import TermReading, in_small_batches, tracking_terms
from attlas.results import Site
from attlas.shapes import HeadMean, QuerySizes

EACH_BLOCK = DecompositionRules(own=equal_shares, each_block=True)


@method(
    family="V",
    signed=False,
    of=None,
    paper="Modarressi et al. 2022, arXiv:2205.03286",
    maps="all",
    reading="How much of each token reaches the position that the model predicts from, by length.",
    needs=("attention",),
    cost="expensive",
    many_targets=True,
    learns=True,
    passes=2,
    weighs=weigh_pairs,
    pair_vectors=2,
)
def globenc(question: Question) -> Scored:
    """Score each token by the lengths of its contributions to the outputs of all layers.

    A layer's output is a sum of contributions, one for each input, through the values, the residual
    connection and both norms; the feed-forward is left out. The layers' maps are multiplied. Scores
    are only comparable within one text: the largest entry of each row of the map is one. Of the
    target, only the positions it is read from matter.
    """
    readout = find_readout(question)
    mixed = [mix(part) for part in in_small_batches(question)]
    mixing, scale = (torch.cat(each) for each in zip(*mixed, strict=True))
    maps = [(Site("all", 0, 1), mixing[:, None])] if question.maps else []
    scores = read_scaled_rows(mixing, scale, readout)
    return Scored(scores, maps, shows="length of contributions")


def mix(question: Question) -> tuple[HeadMean, QuerySizes]:
    """The product over blocks of the lengths of contributions to their output, and its scale."""
    lengths = TermReading(lambda _, terms: term_lengths(terms))
    with tracking_terms(question, EACH_BLOCK, at_end=lengths), question.subject.tap():
        run_logits(question)
    return scaled_product_of_layers([each.permute(1, 2, 0) for each in lengths.blocks])
