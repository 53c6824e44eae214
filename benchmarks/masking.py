"""Each measure that runs the model, on a model trained with masks and on one that was not.

    ATTLAS_DATA=... python benchmarks/masking.py --model FOLDER [--count 24]

SST-2 dev sentences of 8 to 25 words, read by the built-in `sentiment` model, which was trained with
random masking, and by the one in FOLDER. The explanations are integrated gradients (20 midpoints),
rollout of the attention weights, and five shuffles of the first one's scores.

The first table gives the mean of each measure by each removal. `apart` is how much
better the good explanation is than the mean of its shuffles: the mean over texts of the
difference, divided by its standard deviation, with a bootstrap standard error over texts. The
second compares `delete` and `mask`: Kendall's correlation between the orders of seven methods by
their means, with a 95 % interval, and by how much `apart` is larger by `mask`, for integrated
gradients, which start from masks, and for attn_lrp, which has no baseline. The third is about
the measures that remove nothing and judge a method, on the first ten texts. The measures of
agreement with people and editors are left out: these sentences have no marks.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attlas
from attlas.mathematics.rank_agreement import kendall
from attlas.measures import MEASURES, Case, Measure
from attlas.removing.erasures import Erasures
from attlas.removing.removal import REMOVALS

GOOD, WEIGHTS, NEUTRAL = "integrated_gradients", "attention_rollout", "attn_lrp"
SHUFFLED = "shuffled"
OTHERS = ("raw_attention", "gradient_attention", "gradient", "input_x_gradient", NEUTRAL)
COMPARED = ("delete", "mask")  # for all methods; other removals only for good and weights
SHORTEST, LONGEST = 8, 25
STEPS, SHUFFLES, ROBUST, DRAWS = 20, 5, 10, 500

Figures = NDArray[np.float64]  # one for each text
Judged = Mapping[tuple[str, str], Mapping[str, Figures]]  # by measure and removal, by method
Estimate = tuple[float, Figures]  # of all texts, and of each draw of them


def sentences(count: int) -> list[str]:
    """The first sentences of SST-2 dev that are neither short nor long."""
    texts = (str(each.text) for each in attlas.texts("sst2", split="dev"))
    return list(islice((each for each in texts if is_fit(each)), count))


def is_fit(text: str) -> bool:
    return SHORTEST <= len(text.split()) <= LONGEST


def short(subject: attlas.Subject) -> str:
    return Path(subject.name).name


def removing() -> list[Measure]:
    return [each for each in map(MEASURES.__getitem__, attlas.list_measures()) if each.ways]


def explained(subject: attlas.Subject, texts: Sequence[str], name: str) -> list[attlas.Explanation]:
    options: dict[str, Any] = {"steps": STEPS} if name == GOOD else {}
    found: list[attlas.Explanation] = attlas.explain(
        subject, list(texts), name, maps=False, **options
    )
    return found


def judge(subject: attlas.Subject, texts: Sequence[str]) -> Judged:
    """The figures of every measure and removal, for each method and for shuffles."""
    questions = subject.ask(list(texts))
    scores = {name: explained(subject, texts, name) for name in (GOOD, WEIGHTS, *OTHERS)}
    found: dict[tuple[str, str], Mapping[str, Figures]] = {}
    for how in REMOVALS:
        print(f"{subject.name}: {how}", file=sys.stderr, flush=True)
        erasures = Erasures(questions, how)
        names = scores if how in COMPARED else (GOOD, WEIGHTS)
        cases = {name: [*cases_of(erasures, scores[name])] for name in names}
        cases[SHUFFLED] = [again for case in cases[GOOD] for again in shuffled(case)]
        found |= {(each.name, how): by_method(erasures, each, cases) for each in removing()}
    return found


def cases_of(erasures: Erasures, explanations: Sequence[attlas.Explanation]) -> Iterator[Case]:
    """A case for each text; its seed is the number of the text."""
    for text, each in enumerate(explanations):
        yield Case(each.scores[erasures.content(text)].astype(np.float64), text)


def shuffled(case: Case) -> list[Case]:
    random = np.random.default_rng(case.seed)
    return [Case(random.permutation(case.scores), case.seed) for _ in range(SHUFFLES)]


def by_method(
    erasures: Erasures, measure: Measure, cases: Mapping[str, Sequence[Case]]
) -> dict[str, Figures]:
    """The figures of each method, one for each text; for shuffles, their mean."""
    assert measure.ways is not None and measure.value is not None
    wanted: dict[int, list[NDArray[np.bool_]]] = {}
    for case in (case for own in cases.values() for case in own):
        wanted.setdefault(case.seed, []).append(measure.ways(case))
    erasures.ask({text: np.concatenate(ways) for text, ways in wanted.items()})
    found = {}
    for name, own in cases.items():
        figures = [
            measure.value(
                case, erasures.whole(case.seed), erasures.of(case.seed, measure.ways(case))
            )
            for case in own
        ]
        found[name] = np.array(figures).reshape(len(wanted), -1).mean(axis=1)
    return found


def gains(judged: Judged, measure: str, removal: str, method: str) -> Figures:
    """By how much a method is better than the shuffles, on each text."""
    found = judged[measure, removal]
    sign = 1 if MEASURES[measure].better == "higher" else -1
    gained: Figures = sign * (found[method] - found[SHUFFLED])
    return gained


def standardised(differences: Figures) -> float:
    return float(np.nanmean(differences) / np.nanstd(differences, ddof=1))


def drawn(statistic: Callable[[NDArray[np.intp]], float], count: int) -> Estimate:
    """A statistic of all texts, and of bootstrap draws; it takes the numbers of texts."""
    random = np.random.default_rng(0)
    again = [statistic(random.integers(count, size=count)) for _ in range(DRAWS)]
    return statistic(np.arange(count)), np.array(again)


def apart(judged: Judged, measure: str, removal: str) -> Estimate:
    gained = gains(judged, measure, removal, GOOD)
    return drawn(lambda texts: standardised(gained[texts]), len(gained))


def larger(judged: Judged, measure: str, method: str) -> Estimate:
    """By how much a method is further apart from shuffled scores by the second removal."""
    first, second = (gains(judged, measure, how, method) for how in COMPARED)
    return drawn(lambda texts: standardised(second[texts]) - standardised(first[texts]), len(first))


def same_order(judged: Judged, measure: str) -> Estimate:
    """Kendall's correlation between the methods' means by the two removals."""
    first, second = (
        np.array([judged[measure, how][name] for name in (GOOD, WEIGHTS, *OTHERS)])
        for how in COMPARED
    )
    return drawn(
        lambda texts: kendall(
            np.nanmean(first[:, texts], axis=1), np.nanmean(second[:, texts], axis=1)
        ),
        first.shape[1],
    )


def with_error(found: Estimate) -> str:
    return f"{round(found[0], 2) + 0:.2f} ± {np.nanstd(found[1]):.2f}"  # no −0.00


def with_interval(found: Estimate) -> str:
    low, high = np.nanquantile(found[1], [0.025, 0.975])
    return f"{found[0]:.2f} [{low:.2f}, {high:.2f}]"


def arrowed(measure: str) -> str:
    return f"{'↑' if MEASURES[measure].better == 'higher' else '↓'} {measure}"


def show(labels: Sequence[str], columns: Sequence[str], models: Sequence[str]) -> None:
    """The head of a table: columns of labels, then the same columns for each model."""
    cells = [*labels, *(f"{model}: {column}" for model in models for column in columns)]
    print("\n" + row(cells) + "\n" + row(["---"] * len(cells)))


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def show_means(found: Mapping[str, Judged]) -> None:
    show(("measure", "removal"), ("good", "weights", "shuffled", "apart"), list(found))
    for measure in (each.name for each in removing()):
        for how in REMOVALS:
            cells = [arrowed(measure), how]
            for judged in found.values():
                own = judged[measure, how]
                cells += [f"{np.nanmean(own[name]):.3f}" for name in (GOOD, WEIGHTS, SHUFFLED)]
                cells.append(with_error(apart(judged, measure, how)))
            print(row(cells))


def show_compared(found: Mapping[str, Judged]) -> None:
    show(
        ("measure",),
        ("same order", f"{GOOD}, mask − delete", f"{NEUTRAL}, mask − delete"),
        list(found),
    )
    for measure in (each.name for each in removing()):
        cells = [arrowed(measure)]
        for judged in found.values():
            cells.append(with_interval(same_order(judged, measure)))
            cells += [with_error(larger(judged, measure, name)) for name in (GOOD, NEUTRAL)]
        print(row(cells))


def show_robust(subjects: Sequence[attlas.Subject], texts: Sequence[str]) -> None:
    names = [each for each in attlas.list_measures() if MEASURES[each].needs == ("method",)]
    show(("measure",), ("good", "weights"), [short(each) for each in subjects])
    cells = {name: [arrowed(name)] for name in names}
    for subject in subjects:
        for method in (GOOD, WEIGHTS):
            found = attlas.judge(subject, explained(subject, texts, method), names, shuffles=0)
            for name in names:
                rows = [own for each in found for own in each.measured if own.measure == name]
                values = [own.value for own in rows if own.value is not None]
                cells[name].append(f"{np.mean(values):.3f}")
    for own in cells.values():
        print(row(own), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="a classifier trained without masks")
    parser.add_argument("--count", type=int, default=24, help="how many texts")
    given = parser.parse_args()
    texts = sentences(given.count)
    subjects = [attlas.load("sentiment"), attlas.load(given.model)]
    print(f"{len(texts)} texts, good is {GOOD}, weights is {WEIGHTS}")
    found = {short(subject): judge(subject, texts) for subject in subjects}
    show_means(found)
    show_compared(found)
    show_robust(subjects, texts[:ROBUST])


if __name__ == "__main__":
    main()
