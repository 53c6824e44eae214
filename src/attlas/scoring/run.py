"""Scoring methods: a first share of all inputs, which shows how long it takes, then the rest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from attlas.errors import AttlasError, UnknownNameError, UsageError
from attlas.explaining.explanations import explain
from attlas.mathematics.intervals import bootstrap_mean
from attlas.methods import METHODS, Method
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.scoring.benches import BENCHES, Bench, Input
from attlas.scoring.record import Score, Scores
from attlas.verbs import verb

CONTROL = "random_scores"
COUNT = 100
EXPENSIVE_SHARE = 4  # an expensive method gets one input in so many
FIRST_SHARE = 10  # one input in so many is worked on first


@verb("scoring methods")
def score(
    models: Sequence[str] = (),
    methods: Sequence[str] = (),
    *,
    count: int = COUNT,
    seed: int = 0,
    watch: Watch = lambda step: None,
) -> Scores:
    """Score methods, all of them if none are named, on the models of known truth.

    `count` is the number of inputs for each model; expensive methods get a quarter of them. `seed`
    decides which inputs. Random scores always come last, to compare with.
    """
    benches, chosen = find_scored(models, methods, count)
    jobs = [job for bench in benches for job in _jobs(bench, chosen, count, seed, watch)]
    for place, job in enumerate(jobs):
        watch(Step(job.name, place, 2 * len(jobs)))
        job.work(job.first)
    left = sum(job.seconds_left for job in jobs)
    for place, job in enumerate(jobs, len(jobs)):
        watch(Step(job.name, place, 2 * len(jobs), left))
        left = max(left - job.seconds_left, 0.0)
        job.work(len(job.inputs))
    return Scores(tuple(job.result(seed) for job in jobs), CONTROL, seed)


def find_scored(
    models: Sequence[str], methods: Sequence[str], count: int
) -> tuple[list[Bench], list[Method]]:
    """The models and methods of these names, all if none are named."""
    if count < 1:
        raise UsageError(f"count is the number of inputs, 1 or more, not {count}")
    benches = {bench.model: bench for bench in map(_find_bench, models or BENCHES)}
    return list(benches.values()), _find_methods(methods)


def _find_bench(name: str) -> Bench:
    found = BENCHES.get(name.replace("-", "_"))
    if found is None:
        raise UnknownNameError("model to score on", name, BENCHES)
    return found


def _find_methods(names: Sequence[str]) -> list[Method]:
    named = [METHODS[name] for name in names or METHODS.names()]
    control = METHODS[CONTROL]
    return [*dict.fromkeys(each for each in named if each is not control), control]


@dataclass
class Job:
    """A method on the inputs of one model, and how far it has come."""

    bench: Bench
    method: Method
    subject: Subject
    inputs: Sequence[Input]
    values: list[dict[str, list[float]]] = field(default_factory=list)  # one for each input
    seconds: float = 0.0
    reason: str | None = None

    @property
    def name(self) -> str:
        """What is being done, in words."""
        return f"{self.bench.model}: {self.method.name}"

    @property
    def first(self) -> int:
        """How many inputs are worked on first."""
        return -(-len(self.inputs) // FIRST_SHARE)

    @property
    def seconds_left(self) -> float:
        """About how long the rest takes, estimated from what is done."""
        if self.reason or not self.values:
            return 0.0
        return self.seconds / len(self.values) * (len(self.inputs) - len(self.values))

    def work(self, stop: int) -> None:
        """Explain the inputs up to this one; a method that fails once is not run again."""
        inputs = self.inputs[len(self.values) : stop]
        if self.reason or not inputs:
            return
        start = perf_counter()
        try:
            self.values += _values(self.subject, self.bench, self.method.name, inputs)
        except AttlasError as problem:
            self.reason = " ".join(str(problem).split())
        self.seconds += perf_counter() - start

    def result(self, seed: int) -> Score:
        """The figures over all inputs."""
        if self.reason:
            return Score(self.bench.model, self.method.name, None, self.reason)
        found = {
            name: bootstrap_mean([each[name] for each in self.values], seed)
            for name in self.bench.figures
        }
        return Score(self.bench.model, self.method.name, found)


def _jobs(
    bench: Bench,
    methods: Sequence[Method],
    count: int,
    seed: int,
    watch: Watch,
) -> list[Job]:
    watch(Step(f"{bench.model}: texts", 0, 0))
    subject = load(bench.model)
    inputs = bench.inputs(subject, count, seed)
    if not inputs:
        raise AttlasError(f"{bench.model} answers none of {count} inputs rightly")
    fewer = inputs[: max(1, count // EXPENSIVE_SHARE)]
    return [
        Job(bench, method, subject, fewer if method.cost == "expensive" else inputs)
        for method in methods
    ]


def _values(
    subject: Subject, bench: Bench, method: str, inputs: Sequence[Input]
) -> list[dict[str, list[float]]]:
    """The figures of each case, by input; cases with the same target and prefix share a call."""
    groups: dict[Any, list[tuple[int, int]]] = {}
    for number, cases in enumerate(inputs):
        for place, case in enumerate(cases):
            groups.setdefault((case.target, case.prefix), []).append((number, place))
    found: dict[tuple[int, int], dict[str, float]] = {}
    for (target, prefix), places in groups.items():
        group = [inputs[number][place] for number, place in places]
        asked = [case.example.text for case in group]
        given = explain(subject, asked, method, target, prefix=prefix, maps=False)
        for at, case, explanation in zip(places, group, given, strict=True):
            found[at] = {name: rate(explanation, case) for name, rate in bench.figures.items()}
    return [
        {
            name: [found[number, place][name] for place in range(len(cases))]
            for name in bench.figures
        }
        for number, cases in enumerate(inputs)
    ]
