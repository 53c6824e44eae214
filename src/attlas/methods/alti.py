"""ALTI: how close each token's contribution is to each layer's attention output.

Ferrando et al., "Measuring the Mixing of Contextual Information in the Transformer", EMNLP 2022.
"""

import torch

from attlas.errors import UnsupportedModelError
from attlas.methods.support.decomposition import (
    closeness,
    closeness_shares,
    equal_shares,
    product_of_layers,
    weigh_pairs,
)
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import read_row
from attlas.models.asking.question import Question
from attlas.models.asking.reading import find_readout
from attlas.models.asking.scores import run_logits
from attlas.models.decomposing.term_states import DecompositionRules
from attlas.models.decomposing.token_terms import TermReading, in_small_batches, tracking_terms
from attlas.results import Site
from attlas.shapes import HeadMean

EACH_BLOCK = DecompositionRules(own=equal_shares, each_block=True)


@method(
    family="V",
    signed=False,
    of=None,
    paper="Ferrando et al. 2022, arXiv:2203.04212",
    maps="all",
    reading="How much of each token reaches the position that the model predicts from.",
    needs=("attention",),
    cost="expensive",
    many_targets=True,
    fills=True,
    learns=True,
    passes=2,
    weighs=weigh_pairs,
    pair_vectors=2,
)
def alti(question: Question) -> Scored:
    """Score each token by how close its contributions are to the attention outputs of all layers.

    The output of a layer's attention, with residual connection and norm, is a sum of contributions,
    one for each input. A contribution counts by how much closer to the output it is than zero, in
    the L1 distance. The layers' maps are multiplied, and the scores sum to one. Of the target, only
    the positions it is read from matter.
    """
    readout = find_readout(question)
    mixing = torch.cat([mix(part) for part in in_small_batches(question)])
    maps = [(Site("all", 0, 1), mixing[:, None])] if question.maps else []
    return Scored(read_row(mixing, readout), maps, shows="share of each token")


def mix(question: Question) -> HeadMean:
    """The product over layers of how close contributions are to the attention output."""
    near = TermReading(closeness)
    with tracking_terms(question, EACH_BLOCK, at_sum=near), question.subject.tap():
        run_logits(question)
    layers = [closeness_shares(each.permute(1, 2, 0)) for each in near.blocks]
    if len(layers) != len(question.subject.sites):
        raise UnsupportedModelError(
            f"alti needs a feed-forward behind every attention: {question.subject.name} has "
            f"{len(question.subject.sites)} attentions, {len(layers)} of them with one"
        )
    return product_of_layers(layers)
