"""Token mixing: how much of a token is left in its own hidden state, and what heads really gather.

Brunner et al., "On Identifiability in Transformers", ICLR 2020; Pascual, Brunner and Wattenhofer,
"Telling BERT's Full Story: from Local Attention to Global Aggregation", EACL 2021.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.reading.mixtures import Mixture, mix_of
from attlas.trials.support.findings import mean_of, written
from attlas.trials.support.layers import chosen_layers, known_mean, layers_in_words, listed
from attlas.trials.support.scope import Scope
from attlas.trials.support.token_kinds import TOKEN_KINDS
from attlas.trials.support.trial import TrialOutcome, seed_for, trial

OWN, OTHER = "own share", "another token has more"
APART, ALIKE = "attention from aggregation", "attention with aggregation"


@trial(
    cost="expensive",
    paper="Brunner et al. 2020, arXiv:1908.04211; Pascual et al. 2021, arXiv:2004.05916",
    reading="How much of its own token is left in a hidden state, and do heads gather from where "
    "they look?",
    does_not_show="That attention is wrong: a head that looks at a state does look there, whatever "
    "tokens that state is made of.",
    needs=("attention", "embeddings", "values"),
    fills=True,
)
def token_mixing(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    positions: int = 4,
    head_positions: int = 1,
    probes: int = 8,
) -> TrialOutcome:
    """Ask what share each token has in hidden states, by how they move with its embedding.

    Of each text `positions` tokens are drawn, and for what each head gives `head_positions` of
    them. The sizes of the Jacobians are estimated from `probes` random directions. Figures are of
    the layers of the scope: the last for the readout.
    """
    for name, value in (
        ("positions", positions),
        ("head_positions", head_positions),
        ("probes", probes),
    ):
        if value < 1:
            raise UsageError(f"{name} of token_mixing is at least 1, not {value}")
    found = [
        mix_of(
            question.rows([row]),
            _draw(question, row, scope, positions, seed),
            head_positions,
            probes,
            seed,
        )
        for question in questions
        for row in range(len(question))
        if _can_be_asked(question.subject)
    ]
    texts = tuple(number for question in questions for number in question.order)
    layers = chosen_layers(scope, questions[0].subject, len(found[0].own), "token_mixing")
    figures = {
        OWN: np.array([known_mean(each.own[layers]) for each in found]),
        OTHER: np.array([known_mean(each.other_more[layers]) for each in found]),
        APART: np.array([_mean(each.apart, layers) for each in found]),
        ALIKE: np.array([_mean(each.alike, layers) for each in found]),
    }
    return TrialOutcome(
        figures,
        texts,
        _sentence(figures, found),
        ceilings={OWN: 1.0, OTHER: 1.0, APART: float(np.log(2)), ALIKE: 1.0},
        plots=_plots(found),
        notes=(
            f"figures of {layers_in_words(layers)}; {positions} tokens of each text, "
            f"{head_positions} of them for the heads; Jacobians by {probes} random directions",
        ),
        details=_details(found),
    )


def _can_be_asked(subject: OpenModel) -> bool:
    if subject.reads_images or subject.reads_pairs:
        raise UnsupportedModelError(
            f"{subject.name} reads pictures: their patches do not follow one another in a line"
        )
    return True


def _draw(question: Question, row: int, scope: Scope, count: int, seed: int) -> list[int]:
    """Positions in the stack that is read out, of content tokens unless the scope has all."""
    stack = question.inputs.prefix or question.inputs.source
    special = question.inputs.tokens[row].special[stack.start : stack.stop]
    content = [place for place, each in enumerate(special) if scope.specials or not each]
    allowed = content or list(range(len(special)))
    draw = np.random.default_rng(seed_for(seed, question.order[row], "token_mixing"))
    drawn: list[int] = draw.permutation(allowed)[:count].tolist()
    return drawn


def _mean(by_head: Sequence[NDArray[np.float64]], layers: Sequence[int]) -> float:
    return known_mean(np.concatenate([by_head[layer] for layer in layers]))


def _over_texts(values: Sequence[Any]) -> NDArray[np.float64]:
    """The mean over texts of what has the same shape in each, where it is known."""
    with np.errstate(invalid="ignore"):
        stacked = np.stack([np.asarray(each, dtype=np.float64) for each in values])
        known = ~np.isnan(stacked)
        mean: NDArray[np.float64] = np.where(known, stacked, 0).sum(axis=0) / known.sum(axis=0)
    return mean


def _sentence(figures: dict[str, TextValues], found: Sequence[Mixture]) -> str:
    own = _over_texts([each.own for each in found])
    said = (
        f"A hidden state owes {written(mean_of(figures[OWN]))} of how it moves to its own token "
        f"({own[0]:.2f} after the first layer, {own[-1]:.2f} after the last), and for "
        f"{written(mean_of(figures[OTHER]))} of the states another token has more."
    )
    apart = mean_of(figures[APART])
    if apart is None:
        return said
    return (
        f"{said} What heads gather is {written(apart)} (Jensen–Shannon divergence, at most 0.69) "
        "from where they look."
    )


def _plots(found: Sequence[Mixture]) -> tuple[plots.Plot, ...]:
    own, other, near = (
        _over_texts([getattr(each, name) for each in found])
        for name in ("own", "other_more", "by_distance")
    )
    layers = list(range(len(own)))
    shown = sorted({0, len(own) // 2, len(own) - 1})
    kinds = _over_texts([each.kinds for each in found])
    heads = [_over_texts([each.apart[layer] for each in found]) for layer in layers]
    columns = max(map(len, heads))
    padded = [np.pad(each, (0, columns - len(each)), constant_values=np.nan) for each in heads]
    return (
        plots.curve(
            "How much of a token is left in its state",
            layers,
            {OWN: own, OTHER: other},
            x_label="layer",
            y_label="share",
            reading="The lower the first and the higher the second, the less a state stands for "
            "the token at its place.",
        ),
        plots.curve(
            "Contributions by distance",
            list(range(near.shape[1])),
            {f"layer {layer}": near[layer] for layer in shown},
            x_label="tokens between a state and a contributor",
            y_label="mean share of a token",
            reading="A line that falls says that states are made of what stands near them.",
        ),
        plots.matrix(
            "Where heads look against what they gather",
            [f"layer {layer}" for layer in layers],
            [f"head {head}" for head in range(columns)],
            padded,
            x_label="head",
            y_label="Jensen–Shannon divergence",
            reading="The larger, the less the weights of a head say of the tokens it gathers from.",
        ),
        plots.matrix(
            "Where the weight lies, and where it comes from",
            ["attention", "aggregation"],
            TOKEN_KINDS,
            kinds,
            x_label="kind of token",
            y_label="share",
            reading="Of all heads: the weight on states at tokens of a kind, and the share of the "
            "tokens of that kind in what is gathered.",
        ),
    )


def _details(found: Sequence[Mixture]) -> dict[str, Any]:
    return {
        "own share by layer": listed(_over_texts([each.own for each in found])),
        "another has more by layer": listed(_over_texts([each.other_more for each in found])),
        "positions": [list(each.positions) for each in found],
    }
