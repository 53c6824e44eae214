"""The study `better_attention`: what training for better attention does to it.

With and without each objective: is the attention more faithful, more plausible, and what does it
cost in accuracy? Mohankumar et al. 2020, Pruthi et al. 2020, and others, one for each objective.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attlas.results import ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.better.cases import (
    LSTM,
    PLAIN,
    PLANTED,
    RECURRENT,
    SHORTCUTS,
    BetterCase,
    baseline_of,
    cases_of,
    is_baseline,
)
from attlas.studies.better.claims import (
    Cases,
    Found,
    Records,
    accuracy_of,
    auprc_of,
    claims_on,
    compared_cases,
    gains,
    s_of,
)
from attlas.studies.better.models import SHOWN, BetterPlan, train_and_judge
from attlas.studies.support.findings import Findings, compared, over_seeds
from attlas.studies.support.run import Run
from attlas.studies.support.study import study

PUBLISHED = {  # of SST: accuracy and conicity of an LSTM in one direction
    f"{RECURRENT}, {LSTM}: accuracy": 0.8179,
    f"{RECURRENT}, conicity: accuracy": 0.7995,
    f"{RECURRENT}, orthogonal_lstm: accuracy": 0.8005,
    f"{RECURRENT}, {LSTM}: conicity": 0.68,
    f"{RECURRENT}, conicity: conicity": 0.20,
    f"{RECURRENT}, orthogonal_lstm: conicity": 0.28,
}
DIFFERS = (
    "Transformers start from the base in the settings, which has learned sentiment already; the "
    "papers start from BERT, or from random weights.",
    "The model of SST is a BiLSTM with other word vectors; Mohankumar et al. take an LSTM in one "
    "direction, as the orthogonal one and the one beside it are here.",
    "The encoders of one layer are trained on SST with these word vectors, without any learning "
    "before; the identifiable layer stands where torch's stands in the other.",
    "Texts are cut to their first words (see the settings).",
    "Faithfulness is s of the verdict: how much of what matters to the answer the weights find, "
    "from 0 (chance) to 1, by deleting and by masking; the papers have other measures.",
)

APART = ("seeds", "first_seed", "data", "objectives")  # settings on which no single model depends
READ: Mapping[str, Callable[[Mapping[str, Any]], float | None]] = {
    "accuracy": accuracy_of,
    "s of the weights": s_of,
    "AUPRC": auprc_of,
    "conicity": lambda one: one["conicity"],
    "follows the word": lambda one: one.get("follows the word"),
}


@study(
    about="with and without each objective: faithful, plausible, and at what cost",
    question="Does training for better attention make it a better explanation?",
    paper="Mohankumar et al. 2020, arXiv:2004.14243; Pruthi et al. 2020, arXiv:1909.07913",
    quick={
        "data": ("reviews",),
        "objectives": ("rationale:weight=1",),
        "train": 64,
        "count": 2,
        "epochs": 1,
        "seeds": 1,
    },
    takes=(7, 14938),
)
def better_attention(
    run: Run,
    *,
    base: str = "sentiment",
    vectors: str = "",
    data: tuple[str, ...] = ("eraser_movies", "sst", "sst_wiki", "shortcuts"),
    objectives: tuple[str, ...] = (),
    train: int | None = None,
    count: int = 30,
    words: int = 160,
    epochs: int | None = None,
    seeds: int = 5,
    first_seed: int = 0,
) -> Findings:
    """Train with the labels alone and with each objective, and compare the attention.

    Args:
        base: The transformer that is trained on: a built-in name or a folder.
        vectors: A folder or wheel of word vectors for the recurrent models; random without one.
        data: The sets. On `sst` the models are recurrent; on `shortcuts` the texts of `sst` get a
            word that gives the label away, or one at random.
        objectives: Which of the objectives of the sets; all of them if none are named.
        train: How many texts to train on; all if not given.
        count: How many texts with marked words to judge on.
        words: How many words of each text are read, the first ones.
        epochs: Epochs of training; as usual for each model if not given.
        seeds: How many seeds.
        first_seed: The first of them; the others follow.
    """
    found, done = Records(), []
    jobs = jobs_of(data, objectives, seeds, first_seed)
    for number, job in enumerate(jobs):
        run.tell(part_of(*job), number, len(jobs))
        done.append(do(run, *job))
    # Behind all of them: workers are handed the parts that are asked for before one is looked into.
    for job, record in zip(jobs, done, strict=True):
        found.add(*job, record)
    return put_together(found)


def jobs_of(
    data: Sequence[str], objectives: Sequence[str], seeds: int, first_seed: int = 0
) -> list[tuple[int, str, BetterCase]]:
    """What is trained: each seed with each set and each case of it."""
    return [
        (seed, name, case)
        for seed in range(first_seed, first_seed + seeds)
        for name in data
        for case in cases_of(name, objectives)
    ]


def part_of(seed: int, name: str, case: BetterCase) -> str:
    """The name of what is kept of one model."""
    return f"{name}, {case.name}, seed {seed}"


def do(run: Run, seed: int, name: str, case: BetterCase) -> Any:
    """The figures of one model, computed or kept from before, or what stands for them."""
    asked = {each: run.settings[each] for each in ("base", "train", "count", "words", "epochs")}
    plan = BetterPlan(**asked, vectors=run.settings["vectors"] or None, device=run.device)
    return run.kept(
        part_of(seed, name, case),
        lambda: train_and_judge(name, case, plan, seed),
        apart_from=APART,
    )


def put_together(records: Records) -> Findings:
    """What the figures of all models say."""
    found = records.found
    return Findings(
        claims=tuple(claims_on(found)),
        differs=DIFFERS,
        tables=tuple(_tables(found)),
        plots=tuple(_plots(found)),
        seeds=tuple(records.seeds()),
        notes=tuple(_notes(found)),
        details={"found": found},
    )


def _notes(found: Found) -> list[str]:
    """How many seeds each case has, if not all have the same."""
    counts = {
        (data, case): len(each) for data, cases in found.items() for case, each in cases.items()
    }
    if len(set(counts.values())) < 2:
        return []
    told = []
    for count in sorted(set(counts.values()), reverse=True):
        own = [f"{data}, {case}" for (data, case), each in counts.items() if each == count]
        told.append(f"{count} {'seed' if count == 1 else 'seeds'} of: {'; '.join(own)}.")
    return told


def _tables(found: Found) -> list[ComparedTable]:
    reading = (
        "s: how much of what matters the weights find, from 0 (chance) to 1, in the better of two "
        "readings. AUPRC: how well the attention of the last layer ranks what people marked, or "
        "the planted word. Intervals are over seeds; one seed has none."
    )
    tables = [
        compared(f"With and without each objective: {data}", reading, _rows(data, cases), PUBLISHED)
        for data, cases in found.items()
    ]
    shown = _shown(found.get(SHORTCUTS, {}))
    told = "One over the rank of the planted word. Where it gives nothing away it should be low."
    return [
        *tables,
        *([compared("Which methods show a shortcut", told, shown, {})] if shown else []),
    ]


def _rows(data: str, cases: Cases) -> dict[str, Figure]:
    rows = {}
    for case, each in cases.items():
        for name, read in READ.items():
            known = [value for value in map(read, each) if value is not None]
            if known:
                rows[f"{data}, {case}: {name}"] = over_seeds(known)
    return rows


def _shown(cases: Cases) -> dict[str, Figure]:
    rows = {}
    for case, each in cases.items():
        for method in SHOWN:
            read = [one["methods"][method]["AUPRC"] for one in each if method in one["methods"]]
            known = [value for value in read if value is not None]
            if known:
                rows[f"{case}: {method}"] = over_seeds(known)
    return rows


def _plots(found: Found) -> list[plots.Plot]:
    return [*_all_moves(found), *(arrows(data, cases) for data, cases in found.items())]


def _all_moves(found: Found) -> list[plots.Plot]:
    """One picture of all sets: where each objective moves a model, a mean over sets and seeds."""
    moves: dict[str, list[tuple[float, float]]] = {}
    for data, case in compared_cases(found):
        more, better = (_mean(gains(found, data, case, read)) for read in (s_of, accuracy_of))
        if more is not None and better is not None:
            moves.setdefault(case, []).append((more, better))
    if not moves:
        return []
    places = {case: tuple(map(_mean, zip(*each, strict=True))) for case, each in moves.items()}
    spots = {case: ([across], [up]) for case, (across, up) in places.items()}
    return [
        plots.scatter(
            "What each objective changes",
            {"without it": ([0.0], [0.0]), **spots},
            x_label="change of s: faithfulness of the weights",
            y_label="change of accuracy",
            reading="A mean over the sets on which it was trained, and over seeds: to the right, "
            "the weights are more faithful; down, the model is less accurate.",
            arrows_from="without it",
        )
    ]


def arrows(data: str, cases: Cases) -> plots.Plot:
    """Accuracy against faithfulness: an arrow from the labels alone to each objective."""
    start = PLANTED if data == SHORTCUTS else PLAIN
    places = {
        case: (_mean(map(s_of, each)), _mean(map(accuracy_of, each)))
        for case, each in cases.items()
        if case == start or (baseline_of(data, case) == start and not is_baseline(case))
    }
    spots = {case: ([across], [up]) for case, (across, up) in places.items()}
    return plots.scatter(
        f"Accuracy against faithfulness on {data}",
        spots,
        x_label="s: how much of what matters the weights find",
        y_label="accuracy",
        reading=f"Each objective moves the model away from “{start}”: to the right, its weights "
        "are more faithful; down, it is less accurate.",
        arrows_from=start if start in places else None,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return sum(known) / len(known) if known else None
