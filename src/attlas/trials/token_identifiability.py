"""Token identifiability: does a hidden state still show which token it started as?

Brunner et al., "On Identifiability in Transformers", ICLR 2020.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.keeping import kept
from attlas.models.asking.question import Question
from attlas.models.states.block_states import read_states
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.reading.recovering import MAPS, METRICS, StatePairs, is_recovered, learn_maps
from attlas.trials.support.findings import estimate_mean, in_words
from attlas.trials.support.layers import chosen_layers, json_numbers, known_mean, layers_in_words
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, seed_for, trial

KINDS = tuple((kind, metric) for kind in MAPS for metric in METRICS)
FEWEST = 3  # texts: to train on, to stop training by, to test on
HELD = 4  # a quarter of the texts is held out to stop by, and another to test on


@trial(
    cost="expensive",
    paper="Brunner et al. 2020, arXiv:1908.04211",
    reading="Does a hidden state still show which token of its text it started as?",
    does_not_show="That attention to a state is attention to its token: a state can show its token "
    "and still be mixed from others.",
    needs=("attention",),
)
def token_identifiability(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
) -> TrialOutcome:
    """Train maps from hidden states back to the vectors they started as, and test on other texts.

    A token is recovered if, among the vectors of its text, its own is the nearest to what the map
    makes of its state. The maps are trained on half of the texts, drawn by `seed`; a quarter
    decides when to stop, and the figures are of the last quarter. They are of the layers of the
    scope: the last one for `readout`.
    """
    read = [text for question in questions for text in _read(question, scope)]
    texts = tuple(number for question in questions for number in question.order)
    taught, held, asked = split = _split(len(texts), seed)
    layers = range(1, len(read[0].states))  # what enters the first layer is to be recovered
    made = (partial(_rates, read, n, split, seed_for(seed, n, "maps")) for n in layers)
    parts = zip(layers, made, strict=True)
    rates = np.stack([np.stack(kept(f"layer {n}", each)) for n, each in parts])
    chosen = chosen_layers(scope, questions[0].subject, len(rates), "token_identifiability")
    figures = {_name(kind): rates[chosen, number].mean(axis=0) for number, kind in enumerate(KINDS)}
    return TrialOutcome(
        figures,
        texts,
        _sentence(figures, rates),
        ceilings=dict.fromkeys(figures, 1.0),
        plots=(_by_layer(rates),),
        notes=(
            f"figures of {layers_in_words(chosen)}, on {len(asked)} texts; trained on "
            f"{len(taught)} and stopped by {len(held)} others; by chance "
            f"{np.mean([1 / len(read[place].counted) for place in asked]):.2f} would be recovered",
        ),
        details={
            "by layer": {
                _name(kind): json_numbers([known_mean(each) for each in rates[:, number]])
                for number, kind in enumerate(KINDS)
            },
            "asked": [texts[place] for place in asked],
        },
    )


@dataclass(frozen=True, eq=False)
class _Text:
    """The hidden states of one text, and which of its tokens count."""

    states: list[
        Tensor
    ]  # `[token, feature]`: the input of the first layer, and each layer's output
    counted: Tensor


def _read(question: Question, scope: Scope) -> list[_Text]:
    states = [each.float() for each in read_states(question)]
    stack = question.inputs.prefix or question.inputs.source
    special = [tokens.special[stack.start : stack.stop] for tokens in question.inputs.tokens]
    counted = torch.ones_like(torch.tensor(special)) if scope.specials else ~torch.tensor(special)
    return [_Text([each[row] for each in states], counted[row]) for row in range(len(question))]


Split = tuple[list[int], list[int], list[int]]


def _split(count: int, seed: int) -> Split:
    """Indices of the texts to train on, to stop by and to test on."""
    if count < FEWEST:
        raise UsageError(
            f"token_identifiability trains on some texts and tests on others: it needs at least "
            f"{FEWEST}, not {count}"
        )
    drawn = np.random.default_rng(seed).permutation(count).tolist()
    each = max(1, count // HELD)
    return sorted(drawn[2 * each :]), sorted(drawn[:each]), sorted(drawn[each : 2 * each])


def _rates(texts: Sequence[_Text], layer: int, split: Split, seed: int) -> NDArray[np.float64]:
    """The share of tokens recovered after a layer, `[kind, text]`; NaN for texts not tested."""
    taught, held, asked = split
    maps = learn_maps(_lesson(texts, taught, layer), _lesson(texts, held, layer), seed)
    found = np.full((len(KINDS), len(texts)), np.nan)
    for number, (kind, metric) in enumerate(KINDS):
        for place in asked:
            text = texts[place]
            guesses = maps[kind, metric](text.states[layer])
            right = is_recovered(guesses[None], text.states[0][None], metric)[0].cpu()
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
        f"A linear map recovers the token of {_mean_in_words(figures, 'linear')} of the hidden "
        f"states ({first:.2f} after the first layer, {last:.2f} after the last), an MLP of "
        f"{_mean_in_words(figures, 'MLP')}, and the nearest vector without a map of "
        f"{_mean_in_words(figures, 'identity')}."
    )


def _mean_in_words(figures: dict[str, TextValues], kind: str) -> str:
    return in_words(estimate_mean(figures[f"{kind}, cosine"]))


def _by_layer(rates: NDArray[np.float64]) -> plots.Plot:
    return plots.curve(
        "Tokens that can be recovered from their states",
        list(range(len(rates))),
        {
            _name(kind): [known_mean(each) for each in rates[:, number]]
            for number, kind in enumerate(KINDS)
        },
        x_label="layer",
        y_label="share of tokens recovered",
        reading="At 1 every state shows which token of its text it started as, on texts that the "
        "maps were not trained on.",
    )
