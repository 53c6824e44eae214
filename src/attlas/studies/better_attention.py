"""The study `better_attention`: what training for better attention does to it.

With and without each objective: is the attention more faithful, more plausible, and what does it
cost in accuracy? Mohankumar et al. 2020, Pruthi et al. 2020, and others, one for each objective.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.better_models import (
    PLAIN,
    PLANTED,
    RECURRENT,
    SHORTCUTS,
    SHOWN,
    UNPLANTED,
    WEIGHTS,
    BetterPlan,
    cases_of,
    gains,
    train_and_judge,
)
from attlas.studies.support.findings import (
    Findings,
    at_least,
    at_most,
    compared,
    decided,
    near,
    over_seeds,
    untested,
)
from attlas.studies.support.run import Run
from attlas.studies.support.study import study

MOVIES, WIKI = "eraser_movies", "sst_wiki"
MOHANKUMAR, PRUTHI = "Mohankumar et al. 2020", "Pruthi et al. 2020"
PUBLISHED = {  # of SST: accuracy and conicity of an LSTM in one direction
    f"{RECURRENT}, {PLAIN}: accuracy": 0.8179,
    f"{RECURRENT}, conicity: accuracy": 0.7995,
    f"{RECURRENT}, orthogonal_lstm: accuracy": 0.8005,
    f"{RECURRENT}, {PLAIN}: conicity": 0.68,
    f"{RECURRENT}, conicity: conicity": 0.20,
    f"{RECURRENT}, orthogonal_lstm: conicity": 0.28,
}
DIFFERS = (
    "Transformers start from the base in the settings, which has learned sentiment already; the "
    "papers start from BERT, or from random weights.",
    "The model of SST is a BiLSTM with other word vectors; Mohankumar et al. take an LSTM in one "
    "direction, as the orthogonal one is here.",
    "Texts are cut to their first words (see the settings).",
    "Faithfulness is s of the verdict: how much of what matters to the answer the weights find, "
    "from 0 (chance) to 1, by deleting and by masking; the papers have other measures.",
)
Found = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]  # by data and case, for each seed


@study(
    about="with and without each objective: faithful, plausible, and at what cost",
    question="Does training for better attention make it a better explanation?",
    paper="Mohankumar et al. 2020, arXiv:2004.14243; Pruthi et al. 2020, arXiv:1909.07913",
    quick={
        "data": ("reviews",),
        "objectives": ("rationale:weight=1",),
        "train": 24,
        "count": 2,
        "epochs": 1,
        "seeds": 1,
    },
    takes=(7, 0),
)
def better_attention(
    run: Run,
    *,
    base: str = "sentiment",
    vectors: str = "",
    data: tuple[str, ...] = ("eraser_movies", "sst", "sst_wiki", "shortcuts"),
    objectives: tuple[str, ...] = (),
    train: int | None = None,
    count: int = 40,
    words: int = 200,
    epochs: int | None = None,
    seeds: int = 5,
) -> Findings:
    """Train with the labels alone and with each objective, and compare the attention.

    Args:
        base: The transformer that is trained on: a built-in name or a folder.
        vectors: A folder or wheel of word vectors for the recurrent models; random without one.
        data: The sets. On `sst` the models are recurrent; on `shortcuts` the texts of `sst` get a
            word that gives the label away, or one at random.
        objectives: Which objectives, as for `train`; for each set its own if none are named.
        train: How many texts to train on; all if not given.
        count: How many texts with marked words to judge on.
        words: How many words of each text are read, the first ones.
        epochs: Epochs of training; as usual for each model if not given.
        seeds: How many seeds.
    """
    plan = BetterPlan(base, vectors or None, train, count, words, epochs, run.device)
    jobs = [
        (seed, name, case)
        for seed in range(seeds)
        for name in data
        for case in cases_of(name, objectives)
    ]
    found: dict[str, dict[str, list[Any]]] = {}
    for number, (seed, name, case) in enumerate(jobs):
        run.tell(f"{name}, {case.name}, seed {seed}", number, len(jobs))

        def compute(name: str = name, case: Any = case, seed: int = seed) -> dict[str, Any]:
            return train_and_judge(name, case, plan, seed)

        part = f"{name}, {case.name}, seed {seed}"
        kept = run.kept(part, compute, apart_from=("seeds", "data", "objectives"))
        found.setdefault(name, {}).setdefault(case.name, []).append(kept)
    return Findings(
        claims=tuple(claims_on(found)),
        differs=DIFFERS,
        tables=tuple(_tables(found)),
        plots=tuple(_plots(found)),
        seeds=tuple(range(seeds)),
        details={"found": found},
    )


def s_of(each: Mapping[str, Any]) -> float | None:
    """s of the weights, read in the better of two ways, as the verdict does."""
    read = [each["methods"][name].get("s") for name in WEIGHTS if name in each["methods"]]
    return max((one for one in read if one is not None), default=None)


def _auprc(each: Mapping[str, Any]) -> float | None:
    found: float | None = each["methods"][WEIGHTS[0]]["AUPRC"]
    return found


def _accuracy(each: Mapping[str, Any]) -> float:
    return float(each["accuracy"])


def claims_on(found: Found) -> list[Claim]:
    """What was published or is hoped for, decided on one record for each seed."""
    claims = [*_on_conicity(found), *_on_rationales(found), *_on_deception(found)]
    claims += [*_on_faithfulness(found), *_on_shortcuts(found), *_on_keys(found)]
    return claims or [untested("Training makes attention better", "hope", "no set was named")]


def _has(found: Found, data: str, case: str) -> bool:
    return case in found.get(data, {}) and (PLAIN in found[data] or UNPLANTED in found[data])


def _on_conicity(found: Found) -> list[Claim]:
    said = "Training against conicity brings it from about .68 to about .2 on SST"
    cost = "It costs at most 2.5 points of accuracy"
    if not _has(found, RECURRENT, "conicity"):
        return [untested(said, MOHANKUMAR, "SST was not among the data")]
    after = [each["conicity"] for each in found[RECURRENT]["conicity"]]
    before = over_seeds([each["conicity"] for each in found[RECURRENT][PLAIN]])
    return [
        decided(
            said,
            MOHANKUMAR,
            near(0.20, 0.10),
            over_seeds(after),
            published=0.20,
            found=f"With the labels alone it is {before.value:.2f}.",
        ),
        decided(
            cost,
            MOHANKUMAR,
            at_least(-0.025),
            over_seeds(gains(found, RECURRENT, "conicity", _accuracy)),
            published=-0.0184,
            found="The figure is the accuracy, less that with the labels alone.",
        ),
    ]


def _on_rationales(found: Found) -> list[Claim]:
    claims = []
    for data in found:
        if _has(found, data, "rationale"):
            claims.append(
                decided(
                    f"Training on rationales brings the attention nearer to held-out ones ({data})",
                    "Strout et al. 2019, and others",
                    at_least(0.0),
                    over_seeds(gains(found, data, "rationale", _auprc)),
                    found="The figure is the AUPRC of the marked words, less that with the labels "
                    "alone.",
                )
            )
    return claims


def _on_deception(found: Found) -> list[Claim]:
    if not _has(found, WIKI, "deception"):
        return [untested("A deceptive model can be made", PRUTHI, "sst_wiki was not among the data")]
    return [
        decided(
            "A model that is trained to hide the words it uses stays as accurate",
            PRUTHI,
            at_least(-0.02),
            over_seeds(gains(found, WIKI, "deception", _accuracy)),
            found="The figure is its accuracy, less that of the honest one.",
        ),
        decided(
            "The test tells the deceptive model from the honest one: its weights find less of "
            "what matters",
            "the verdict",
            at_most(-0.1),
            over_seeds(gains(found, WIKI, "deception", s_of)),
            found="The figure is s, less that of the honest one.",
        ),
    ]


def _on_faithfulness(found: Found) -> list[Claim]:
    claims = []
    for data, cases in found.items():
        for case in cases:
            if case in (PLAIN, "deception") or PLAIN not in cases or data == SHORTCUTS:
                continue
            claims.append(
                decided(
                    f"{case} makes the weights more faithful ({data})",
                    "hope",
                    at_least(0.0),
                    over_seeds(gains(found, data, case, s_of)),
                    found="The figure is s, less that with the labels alone.",
                )
            )
    return claims


def _on_shortcuts(found: Found) -> list[Claim]:
    if not _has(found, SHORTCUTS, PLANTED):
        return [untested("Attention shows a planted shortcut", "Bastings et al. 2022", "not asked")]
    claims = []
    for method in SHOWN:
        read = [each["methods"].get(method) for each in found[SHORTCUTS][PLANTED]]
        known = [each["AUPRC"] for each in read if each and each["AUPRC"] is not None]
        if known:
            claims.append(
                decided(
                    f"{method} puts a planted shortcut first",
                    "Bastings et al. 2022",
                    at_least(0.8),
                    over_seeds(known),
                    found="The figure is one over the rank of the planted word, a mean over texts.",
                )
            )
    return claims


def _on_keys(found: Found) -> list[Claim]:
    claims = []
    for case in ("permuted_keys", "adversarial_keys"):
        if _has(found, MOVIES, case):
            claims.append(
                decided(
                    f"Training with {case.replace('_', ' ')} improves the model",
                    "poster, future work",
                    at_least(0.0),
                    over_seeds(gains(found, MOVIES, case, _accuracy)),
                    found="The figure is the accuracy, less that with the labels alone.",
                )
            )
    return claims


def _tables(found: Found) -> list[ComparedTable]:
    rows: dict[str, Figure] = {}
    for data, cases in found.items():
        for case, each in cases.items():
            figures = {"accuracy": _accuracy, "s of the weights": s_of, "AUPRC": _auprc}
            figures["conicity"] = lambda one: one["conicity"]
            figures["follows the word"] = lambda one: one.get("follows the word")
            for name, read in figures.items():
                known = [value for value in map(read, each) if value is not None]
                if known:
                    rows[f"{data}, {case}: {name}"] = over_seeds(known)
    reading = (
        "s: how much of what matters the weights find, from 0 to 1, read in the better of two ways. "
        "AUPRC: how well the attention of the last layer ranks what people marked, or the planted "
        "word. Intervals are over seeds."
    )
    shown: dict[str, Figure] = {}
    for case, each in found.get(SHORTCUTS, {}).items():
        for method in SHOWN:
            known = [one["methods"][method]["AUPRC"] for one in each if method in one["methods"]]
            shown[f"{case}: {method}"] = over_seeds([one for one in known if one is not None])
    tables = [compared("With and without each objective", reading, rows, PUBLISHED)]
    if shown:
        told = "One over the rank of the planted word. Where it gives nothing away it should be low."
        tables.append(compared("Which methods show a shortcut", told, shown, {}))
    return tables


def _plots(found: Found) -> list[plots.Plot]:
    return [arrows(data, cases) for data, cases in found.items() if data != SHORTCUTS] or [
        arrows(data, cases) for data, cases in found.items()
    ]


def arrows(data: str, cases: Mapping[str, Sequence[Mapping[str, Any]]]) -> plots.Plot:
    """Accuracy against faithfulness: from the labels alone to each objective, a line of two."""
    spots: dict[str, tuple[list[float], list[float]]] = {}
    places = {
        case: (
            over_seeds([value for value in map(s_of, each) if value is not None]).value or 0.0,
            over_seeds([_accuracy(one) for one in each]).value or 0.0,
        )
        for case, each in cases.items()
    }
    for case, place in places.items():
        spots[case] = ([place[0]], [place[1]])
    return plots.scatter(
        f"Accuracy against faithfulness on {data}",
        spots,
        x_label="s: how much of what matters the weights find",
        y_label="accuracy",
        reading=f"Each objective moves the model away from “{PLAIN}”: to the right, its weights "
        "are more faithful; down, it is less accurate.",
    )
