"""Token mixing: how much of a token is left in its hidden state, and what heads really gather.

Brunner et al., "On Identifiability in Transformers", ICLR 2020; Pascual, Brunner and Wattenhofer,
"Telling BERT's Full Story: from Local Attention to Global Aggregation", EACL 2021.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UnsupportedModelError, UsageError
from attlas.keeping import kept
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.reading.mixtures import Mixture, mixtures_of
from attlas.trials.support.findings import estimate_mean, in_words
from attlas.trials.support.layers import chosen_layers, json_numbers, known_mean, layers_in_words
from attlas.trials.support.scope import Scope
from attlas.trials.support.token_kinds import TOKEN_KINDS
from attlas.trials.support.trial import TrialOutcome, seed_for, trial

OWN, OTHER = "own share", "another token has more"
APART, ALIKE = "attention from aggregation", "attention with aggregation"


@trial(
    cost="expensive",
    paper="Brunner et al. 2020, arXiv:1908.04211; Pascual et al. 2021, arXiv:2004.05916",
    reading="How much of its own token is left in a hidden state, and do heads gather from the "
    "tokens they attend to?",
    does_not_show="That attention is wrong: a head does attend to a state, whatever tokens that "
    "state is mixed from.",
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
    """Measure the share of each token in hidden states, by how they move with its embedding.

    From each text `positions` tokens are drawn, and `head_positions` of them for the outputs of the
    heads. The sizes of the Jacobians are estimated from `probes` random directions. Figures are of
    the layers of the scope: the last one for `readout`.
    """
    for name, value in (
        ("positions", positions),
        ("head_positions", head_positions),
        ("probes", probes),
    ):
        if value < 1:
            raise UsageError(f"{name} of token_mixing must be at least 1, not {value}")
    _check_reads_text(questions[0].subject)
    found = []
    for question in questions:
        drawn = [_draw(question, row, scope, positions, seed) for row in range(len(question))]
        found += _mixtures(question, drawn, head_positions, probes, seed)
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


def _mixtures(
    question: Question, drawn: Sequence[Sequence[int]], heads_at: int, probes: int, seed: int
) -> list[Mixture]:
    """The mixtures of a batch, as flat lists of arrays where they are kept."""

    def ask() -> list[NDArray[np.float64]]:
        made = mixtures_of(question, drawn, heads_at, probes, seed)
        return [part for each in made for part in each.parts()]

    parts = kept(f"token_mixing {question.order}", ask)
    each = len(parts) // len(drawn)
    return [
        Mixture.of_parts(own, parts[row * each : (row + 1) * each]) for row, own in enumerate(drawn)
    ]


def _check_reads_text(subject: OpenModel) -> None:
    if subject.reads_images or subject.reads_pairs:
        raise UnsupportedModelError(
            f"token_mixing needs tokens in one line, and {subject.name} reads pictures"
        )


def _draw(question: Question, row: int, scope: Scope, count: int, seed: int) -> list[int]:
    """Random positions of content tokens, or of any tokens if the scope has special ones."""
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
    """The mean over texts of arrays of one shape, without NaN."""
    with np.errstate(invalid="ignore"):
        stacked = np.stack([np.asarray(each, dtype=np.float64) for each in values])
        known = ~np.isnan(stacked)
        mean: NDArray[np.float64] = np.where(known, stacked, 0).sum(axis=0) / known.sum(axis=0)
    return mean


def _sentence(figures: dict[str, TextValues], found: Sequence[Mixture]) -> str:
    own = _over_texts([each.own for each in found])
    said = (
        f"The share of its own token in a hidden state is "
        f"{in_words(estimate_mean(figures[OWN]))} ({own[0]:.2f} after the first layer, "
        f"{own[-1]:.2f} after the last), and in {in_words(estimate_mean(figures[OTHER]))} of the "
        "states another token has a larger share."
    )
    apart = estimate_mean(figures[APART])
    if apart is None:
        return said
    return (
        f"{said} What heads gather differs from where they attend by {in_words(apart)} "
        "(Jensen–Shannon divergence, at most 0.69)."
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
            "How much of a token is left in its hidden state",
            layers,
            {OWN: own, OTHER: other},
            x_label="layer",
            y_label="share",
            reading="The lower the first line and the higher the second, the less a state stands "
            "for the token at its position.",
        ),
        plots.curve(
            "Contributions by distance",
            list(range(near.shape[1])),
            {f"layer {layer}": near[layer] for layer in shown},
            x_label="tokens between a state and a contributor",
            y_label="mean share of a token",
            reading="A falling line means that states are mixed from tokens near them.",
        ),
        plots.matrix(
            "Where heads attend and what they gather",
            [f"layer {layer}" for layer in layers],
            [f"head {head}" for head in range(columns)],
            padded,
            x_label="head",
            y_label="Jensen–Shannon divergence",
            reading="The larger, the less a head gathers from the tokens it attends to.",
        ),
        plots.matrix(
            "Where attention lies, and which tokens it gathers",
            ["attention", "aggregation"],
            TOKEN_KINDS,
            kinds,
            x_label="kind of token",
            y_label="share",
            reading="Over all heads: the weight on states at tokens of a kind, and the share of "
            "tokens of that kind in what is gathered.",
        ),
    )


def _details(found: Sequence[Mixture]) -> dict[str, Any]:
    return {
        "own share by layer": json_numbers(_over_texts([each.own for each in found])),
        "another has more by layer": json_numbers(_over_texts([each.other_more for each in found])),
        "positions": [list(each.positions) for each in found],
    }
