"""Token identifiability: whether a hidden state still tells which token it began as.

Brunner et al., "On Identifiability in Transformers", ICLR 2020.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.asking.question import Question
from attlas.models.states.block_states import read_states
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.reading.recovering import MAPS, METRICS, StatePairs, found_again, learn_maps
from attlas.trials.support.findings import mean_of, written
from attlas.trials.support.layers import chosen_layers, known_mean, layers_in_words, listed
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, seed_for, trial

KINDS = tuple((kind, metric) for kind in MAPS for metric in METRICS)
FEWEST = 3  # texts: to learn from, to stop by, to ask
HELD = 4  # a quarter of the texts is to stop by, another to ask


@trial(
    cost="expensive",
    paper="Brunner et al. 2020, arXiv:1908.04211",
    reading="Can it be told from a hidden state which token of its text it began as?",
    does_not_show="That attention to a state is attention to its token: a state can be told and "
    "still be made of others.",
    needs=("attention",),
)
def token_identifiability(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
) -> TrialOutcome:
    """Learn maps from hidden states back to the vectors they began as, and ask on other texts.

    A state is found again if the vector nearest to what the map makes of it, among those of its own
    text, is the one it began as. Half of the texts, drawn by `seed`, are learnt from, a quarter
    says when to stop, and the figures are of the last quarter. They are of the layers of the scope:
    the last for the readout.
    """
    read = [text for question in questions for text in _read(question, scope)]
    texts = tuple(number for question in questions for number in question.order)
    taught, held, asked = split = _split(len(texts), seed)
    layers = range(1, len(read[0].states))  # what enters the first is what is looked for
    rates = np.stack(
        [_rates(read, layer, split, seed_for(seed, layer, "maps")) for layer in layers]
    )
    chosen = chosen_layers(scope, questions[0].subject, len(rates), "token_identifiability")
    figures = {_name(kind): rates[chosen, number].mean(axis=0) for number, kind in enumerate(KINDS)}
    return TrialOutcome(
        figures,
        texts,
        _sentence(figures, rates),
        ceilings=dict.fromkeys(figures, 1.0),
        plots=(_by_layer(rates),),
        notes=(
            f"figures of {layers_in_words(chosen)}, on {len(asked)} texts; learnt from "
            f"{len(taught)}, stopped by {len(held)}; by chance "
            f"{np.mean([1 / len(read[place].counted) for place in asked]):.2f} would be found",
        ),
        details={
            "by layer": {
                _name(kind): listed([known_mean(each) for each in rates[:, number]])
                for number, kind in enumerate(KINDS)
            },
            "asked": [texts[place] for place in asked],
        },
    )


@dataclass(frozen=True, eq=False)
class _Text:
    """The states of one text, and which of its tokens are asked about."""

    states: list[Tensor]  # `[token, feature]`: what enters the first layer, and what each gives
    counted: Tensor


def _read(question: Question, scope: Scope) -> list[_Text]:
    states = [each.float() for each in read_states(question)]
    stack = question.inputs.prefix or question.inputs.source
    special = [tokens.special[stack.start : stack.stop] for tokens in question.inputs.tokens]
    counted = torch.ones_like(torch.tensor(special)) if scope.specials else ~torch.tensor(special)
    return [_Text([each[row] for each in states], counted[row]) for row in range(len(question))]


Split = tuple[list[int], list[int], list[int]]


def _split(count: int, seed: int) -> Split:
    """Places of texts to learn from, to stop by and to ask."""
    if count < FEWEST:
        raise UsageError(
            f"token_identifiability learns from some texts and asks about others: it needs at "
            f"least {FEWEST}, not {count}"
        )
    drawn = np.random.default_rng(seed).permutation(count).tolist()
    each = max(1, count // HELD)
    return sorted(drawn[2 * each :]), sorted(drawn[:each]), sorted(drawn[each : 2 * each])


def _rates(texts: Sequence[_Text], layer: int, split: Split, seed: int) -> NDArray[np.float64]:
    """The share of tokens found again after a layer, `[kind, text]`; NaN for texts not asked."""
    taught, held, asked = split
    maps = learn_maps(_lesson(texts, taught, layer), _lesson(texts, held, layer), seed)
    found = np.full((len(KINDS), len(texts)), np.nan)
    for number, (kind, metric) in enumerate(KINDS):
        for place in asked:
            text = texts[place]
            guesses = maps[kind, metric](text.states[layer])
            right = found_again(guesses[None], text.states[0][None], metric)[0].cpu()
            if bool(text.counted.any()):
                found[number, place] = right[text.counted].double().mean().item()
    return found


def _lesson(texts: Sequence[_Text], places: Sequence[int], layer: int) -> StatePairs:
    return StatePairs(
        torch.cat([texts[place].states[layer] for place in places]),
        torch.cat([texts[place].states[0] for place in places]),
    )


def _name(kind: tuple[str, str]) -> str:
    return f"{kind[0]}, {kind[1]}"


def _sentence(figures: dict[str, TextValues], rates: NDArray[np.float64]) -> str:
    linear = KINDS.index(("linear", "cosine"))
    first, last = known_mean(rates[0, linear]), known_mean(rates[-1, linear])
    return (
        f"Of the hidden states, {written(mean_of(figures['linear, cosine']))} can be told to be of "
        f"their token by a linear map ({first:.2f} after the first layer, {last:.2f} after the "
        f"last), {written(mean_of(figures['MLP, cosine']))} by an MLP and "
        f"{written(mean_of(figures['identity, cosine']))} as they are."
    )


def _by_layer(rates: NDArray[np.float64]) -> plots.Plot:
    return plots.curve(
        "Tokens that can be told from their states",
        list(range(len(rates))),
        {
            _name(kind): [known_mean(each) for each in rates[:, number]]
            for number, kind in enumerate(KINDS)
        },
        x_label="layer",
        y_label="share of tokens found again",
        reading="At 1 every state tells which token of its text it began as; texts that the maps "
        "have not seen.",
    )
