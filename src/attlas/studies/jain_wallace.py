"""The study `jain_wallace`: is the attention of a recurrent model an explanation?

Jain and Wallace, "Attention is not Explanation", NAACL 2019.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from attlas.errors import UnknownNameError, UsageError
from attlas.mathematics.other_weights import AdversaryPlan
from attlas.models.recurrent.fitting import FitPlan
from attlas.studies.recurrent.causes import CAUSES, cause_tables, measure_causes
from attlas.studies.recurrent.explanation_figures import (
    ExplanationPlan,
    explanation_figures,
    plots_of,
)
from attlas.studies.recurrent.explanation_tables import (
    claims_of,
    summaries,
    tables_of,
)
from attlas.studies.recurrent.on_transformer import transformer_part, transformer_tables
from attlas.studies.recurrent.tasks import TASKS, RecurrentTask, read_task
from attlas.studies.recurrent.training import (
    FREQUENT,
    ModelRecipe,
    check_vectors,
    seeded,
    train_model,
    vector_lengths,
)
from attlas.studies.support.findings import Findings
from attlas.studies.support.run import Run
from attlas.studies.support.study import study

APART = (
    *("data", "encoder", "attention", "seeds", "first_seed", "seeds_elsewhere"),
    *("causes", "cause_seeds", "transformer_count"),
)
DIFFERS = (
    "Word vectors: a word's vector is the mean of the vectors of its pieces (wordllama, 256 wide), "
    "or random, in place of fastText (300 wide).",
    "ag_news: about 5,000 training texts in place of 60,000; imdb: a sample of texts, cut at 256 "
    "tokens; facts, generated stories, in place of bAbI 1.",
    "Words are split by our own rule, not by spaCy's; the epoch is chosen by the AUC on dev texts, "
    "as theirs.",
    "The transformer is a small one that comes with Attlas, on reviews written for it; the paper "
    "has none.",
)


@study(
    about="τ of attention with gradients and leave-one-out, permutation, adversarial attention",
    question="Do attention weights explain what a recurrent model predicts?",
    paper="Jain and Wallace 2019, arXiv:1902.10186",
    quick={
        "data": ("reviews",),
        "encoder": ("bilstm", "average"),
        "attention": ("additive",),
        "seeds": 2,
        "epochs": 3,
        "rate": 0.01,
        "hidden_size": 32,
        "permutations": 10,
        "adversary_steps": 30,
        "causes": (),
        "transformer_count": 0,
    },
    takes=(6, 3566),
)
def jain_wallace(
    run: Run,
    *,
    data: tuple[str, ...] = ("sst", "imdb", "ag_news", "20newsgroups", "facts"),
    encoder: tuple[str, ...] = ("bilstm", "cnn", "average"),
    attention: tuple[str, ...] = ("additive", "scaled_dot"),
    seeds: int = 5,
    first_seed: int = 0,
    seeds_elsewhere: int = 5,
    vectors: str | None = None,
    train_elsewhere: int = 4000,
    count_elsewhere: int = 400,
    count: int | None = None,
    epochs: int | None = None,
    rate: float = 0.001,
    hidden_size: int | None = None,
    permutations: int = 100,
    adversary_steps: int = 500,
    causes: tuple[str, ...] = (
        "averaged_loss",
        "no_decay",
        "short_vectors",
        "long_vectors",
        "even_vectors",
        "random_vectors",
        "fixed_vectors",
        "dropout",
        "half_width",
        "two_epochs",
    ),
    cause_seeds: int = 3,
    transformer_count: int = 60,
) -> Findings:
    """Compare attention with gradients and leave-one-out, permute it, and replace it.

    Args:
        data: The tasks; the claims are decided on the first.
        encoder: The encoders: bilstm, cnn, average.
        attention: The attentions: additive, scaled_dot.
        seeds: Models of each kind on the first task.
        first_seed: The first of them; the others follow.
        seeds_elsewhere: Models of each kind on the other tasks.
        vectors: A folder or a wheel with word vectors; random ones if not given.
        train_elsewhere: Texts to train on, at most, after the first task.
        count_elsewhere: Texts to test on, at most, after the first task.
        count: Texts to test on in the first task, at most; all if not given.
        epochs: Epochs of each training; those of the task if not given.
        rate: The learning rate.
        hidden_size: The width of the states; that of the paper for each encoder if not given.
        permutations: How often the weights of each text are permuted.
        adversary_steps: Steps of the search for adversarial attention.
        causes: Changes of the first model's training whose effect on τ is measured.
        cause_seeds: Models with each of these changes, at most one for each of the seeds.
        transformer_count: Texts on which a transformer is asked the same; 0 leaves it out.
    """
    setting = Setting(vectors, epochs, rate, hidden_size, permutations, adversary_steps)
    _check(data, encoder, attention, causes, vectors)
    sizes = {name: (train_elsewhere, count_elsewhere) for name in data[1:]}
    tasks = {name: _read(name, *sizes.get(name, (None, count))) for name in data}
    every = range(first_seed, first_seed + seeds)
    cells = list(_cells(data, encoder, attention, every, seeds_elsewhere))
    parts: dict[tuple[str, str, str], list[Any]] = {}
    for number, (task, one, other, seed) in enumerate(cells):
        where = task if task == data[0] else f"{task} elsewhere"  # in another size
        name = f"{where} {one} {other} seed {seed}"
        run.tell(name, number, len(cells))
        measure = partial(setting.measure, run, tasks[task], setting.recipe(one, other), seed)
        found = run.kept(name, measure, APART)
        parts.setdefault((task, one, other), []).append(found)
    first = (tasks[data[0]], setting.recipe(encoder[0], attention[0]))
    changed = measure_causes(run, *first, causes, every[:cause_seeds], setting.epochs, APART)
    asked_too = run.kept(
        "transformer", lambda: transformer_part(run.device, transformer_count), APART[:-1]
    )
    usual = parts[data[0], encoder[0], attention[0]]
    tables = (*tables_of(parts), *cause_tables(changed, usual), *transformer_tables(asked_too))
    return Findings(
        claims=tuple(claims_of(parts, data[0])),
        differs=DIFFERS,
        tables=tables,
        plots=tuple(plots_of(parts)),
        seeds=tuple(every),
        notes=(*NOTES, _lengths(tasks[data[0]], vectors)),
        details={"causes": changed, "transformer": asked_too, "models": summaries(parts)},
    )


NOTES = (
    "Two versions of Table 2 were published. The figures beside ours are those of the first, which "
    "the repository holds; on sst the proceedings have 0.39 (BiLSTM) and 0.69 (average) for τ with "
    "the gradient, and 0.34 for leave-one-out.",
    "In the files of the repository, the names of attention against leave-one-out and attention "
    "against gradient are exchanged; the figures here are by what they are.",
)


def _lengths(task: RecurrentTask, vectors: str | None) -> str:
    frequent, others = vector_lengths(task, vectors)
    return (
        f"The vectors of the {FREQUENT} most frequent words of {task.name} are {frequent:.1f} long "
        f"on average, those of all others {others:.1f}. Gradient · vector grows with the length, "
        "so vectors whose lengths already tell frequent words from rare ones move τ; see the "
        "tables on what moves it."
    )


@dataclass(frozen=True)
class Setting:
    """How every model of the study is trained and measured."""

    vectors: str | None
    epochs: int | None
    rate: float
    hidden_size: int | None
    permutations: int
    adversary_steps: int

    def recipe(self, encoder: str, attention: str) -> ModelRecipe:
        """The recipe of one kind of model."""
        parts: dict[str, Any] = {"encoder": encoder, "attention": attention}
        if self.hidden_size:
            parts["hidden_size"] = self.hidden_size
        return ModelRecipe(parts, self.vectors, plan=FitPlan(rate=self.rate))

    def measure(
        self, run: Run, task: RecurrentTask, recipe: ModelRecipe, seed: int
    ) -> dict[str, Any]:
        """Train a model and measure it."""
        chosen = seeded(recipe, seed, self.epochs or task.epochs)
        trained = train_model(task, chosen, run.device)
        plan = ExplanationPlan(
            self.permutations, AdversaryPlan(steps=self.adversary_steps), seed=seed
        )
        return explanation_figures(trained, plan)


def _check(
    data: Sequence[str],
    encoder: Sequence[str],
    attention: Sequence[str],
    causes: Sequence[str],
    vectors: str | None,
) -> None:
    allowed: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
        "task": (data, TASKS),
        "encoder": (encoder, ("bilstm", "cnn", "average")),
        "attention": (attention, ("additive", "scaled_dot")),
    }
    for kind, (given, known) in allowed.items():
        if not given:
            raise UsageError(f"name at least one {kind}: {', '.join(known)}")
        for each in given:
            if each not in known:
                raise UnknownNameError(kind, each, known)
    for each in causes:
        if each not in CAUSES:
            raise UnknownNameError("cause", each, CAUSES)
    check_vectors(vectors)


def _read(name: str, train_on: int | None, count: int | None) -> RecurrentTask:
    return read_task(name, train_on=train_on, count=count)


def _cells(
    data: Sequence[str],
    encoder: Sequence[str],
    attention: Sequence[str],
    seeds: range,
    elsewhere: int,
) -> Iterator[tuple[str, str, str, int]]:
    """Every model: all kinds on every task, and all seeds on the first."""
    for number, task in enumerate(data):
        for one in encoder:
            for other in attention:
                for seed in seeds if number == 0 else seeds[:elsewhere]:
                    yield task, one, other, seed
