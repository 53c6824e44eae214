"""The study `identifiability`: what of attention the output depends on, and what of tokens is left.

Brunner et al., "On Identifiability in Transformers", ICLR 2020; Sun and Marasović, "Effective
Attention Sheds Light On Interpretability", Findings of ACL 2021; Bhardwaj et al., "More
Identifiable yet Equally Performant Transformers for Text Classification", ACL 2021.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from attlas.data import texts
from attlas.data.example import Example
from attlas.models.encoding.request import Request
from attlas.models.load import load
from attlas.studies.support.findings import Findings
from attlas.studies.support.identifiable_encoder import (
    claims_on_encoders,
    compare_encoders,
    encoder_table,
)
from attlas.studies.support.run import Run
from attlas.studies.support.several_models import described, models_at, named
from attlas.studies.support.small_transformer import make_lesson
from attlas.studies.support.study import study
from attlas.studies.tables.hidden_states import (
    claims_on_states,
    layers_table,
    state_plots,
    states_table,
)
from attlas.trials import TRIALS, Scope

BUILT_IN = ("reviews", "reviews_hard")
OF_SEEDS = ("seeds", "first_seed", "model")  # settings that change no part, but which there are
OF_ENCODERS = ("steps", "classify", "tested")  # settings that change nothing of the states
OF_STATES = ("data", "count", "mixed")  # and of the encoders
DIFFERS = (
    "The model is the one named in the settings, not BERT-base: a head of it has another width.",
    "Null spaces are those of texts without padding, head by head, with a threshold by the "
    "precision of the values; the released code of 2021 takes one rank for a padded batch.",
    "Figures of attention are means over all layers, heads and rows.",
    "The exact rates of the paper of 2020 are in figures; the share of mixed tokens is given in "
    "words.",
    "The encoders of 2021 are written anew from their definition: in the released code heads are "
    "not added, and the mask is turned round. They read at most 128 tokens.",
)


@study(
    about="raw and effective attention, tokens recovered and mixed, and an identifiable encoder",
    question="Does the output determine the attention, and a hidden state its token?",
    paper="Brunner et al. 2020, arXiv:1908.04211",
    quick={
        "data": "reviews",
        "count": 4,
        "mixed": 1,
        "classify": "reviews",
        "tested": 20,
        "steps": 10,
        "seeds": 1,
    },
    takes=(8, 340),
)
def identifiability(
    run: Run,
    *,
    model: str = "sentiment",
    data: str = "sst2",
    count: int = 200,
    mixed: int = 40,
    classify: str = "ag_news",
    tested: int = 2000,
    steps: int = 800,
    seeds: int = 5,
    first_seed: int = 0,
) -> Findings:
    """Measure null spaces, recover tokens from states, and train two kinds of encoder.

    Args:
        model: The model whose attention is measured: a built-in name, a folder, or a folder of
            such folders, one for each seed of the training.
        data: The texts for it.
        count: How many of them.
        mixed: How many of these are used for the mixing of tokens, which takes longest.
        classify: The data that the encoders are trained and tested on.
        tested: How many texts they are tested on.
        steps: Steps of their training.
        seeds: How many encoders of each kind are trained.
        first_seed: The first of their seeds; the others follow.
    """
    asked = {"count": count, "mixed": mixed}
    states = []
    for each in models_at(model):
        run.tell(f"states of {each}", 0, 1)
        measure = partial(_states, run, each, data, asked)
        states.append(run.kept(f"states of {named(each)}", measure, (*OF_SEEDS, *OF_ENCODERS)))
    encoders = []
    every = range(first_seed, first_seed + seeds)
    for seed in every:
        run.tell(f"encoders, seed {seed}", seed - first_seed, seeds)
        measure = partial(_encoders, run, classify, tested, steps, seed)
        encoders.append(run.kept(f"encoders seed {seed}", measure, (*OF_SEEDS, *OF_STATES)))
    return Findings(
        claims=(*claims_on_states(states), *claims_on_encoders(encoders)),
        differs=DIFFERS,
        tables=(states_table(states), layers_table(states), encoder_table(encoders)),
        plots=tuple(state_plots(states, encoders)),
        seeds=tuple(every),
        notes=(described(models_at(model)),),
        details={"states": states, "encoders": encoders},
    )


def _states(run: Run, model: str, data: str, asked: Mapping[str, int]) -> dict[str, Any]:
    subject = load(model, device=run.device)
    examples = _read(data, "dev", asked["count"], 0)
    questions = subject.ask([each.text for each in examples], Request(truncate=True))
    few = subject.ask([each.text for each in examples[: asked["mixed"]]], Request(truncate=True))
    weights = TRIALS["identifiability"].run(questions, Scope("all"), searches=1)
    tokens = TRIALS["token_identifiability"].run(questions)
    mixing = TRIALS["token_mixing"].run(few)
    return {
        "figures": {name: each.tolist() for name, each in weights.figures.items()},
        "width": min(weights.details["longest identifiable"].values()) - 1,
        "recovered": dict(tokens.details["by layer"]),
        "own": mixing.details["own share by layer"],
        "other": mixing.details["another has more by layer"],
    }


def _encoders(run: Run, data: str, tested: int, steps: int, seed: int) -> dict[str, Any]:
    taught = _read(data, "train", None, seed)
    asked = _read(data, "test", tested, seed)
    if data in BUILT_IN:
        known = {each.text for each in asked}
        taught = [each for each in taught if each.text not in known]
    return compare_encoders(make_lesson(taught, 20000), asked, steps, seed, run.device)


def _read(data: str, split: str, count: int | None, seed: int) -> list[Example]:
    return texts(data, split=None if data in BUILT_IN else split, count=count, seed=seed)
