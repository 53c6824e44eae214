"""Remove and retrain: does a model learn the task without the tokens that a method names?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from attlas.data.example import Example
from attlas.data.sampling import sample
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.methods import METHODS
from attlas.models.asking.ask import ask
from attlas.models.asking.filling import fill
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.resolve import find_label
from attlas.models.encoding.encode_input import encode_input
from attlas.models.encoding.request import Request
from attlas.models.intervening.training import TrainingPlan
from attlas.progress import Tell, silent
from attlas.trials.relearning.curves import FORMS, RANDOM, LabelledTexts, Relearning
from attlas.trials.relearning.relearned import outcome_of
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, seed_for, trial

COMPARED = ("raw_attention", "attention_rollout", "integrated_gradients")
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
CUT = Request(truncate=True)


@trial(
    cost="expensive",
    paper="Hooker et al. 2019, arXiv:1806.10758; Madsen et al. 2022, arXiv:2110.08412",
    reading="Does a model that is trained again without the highest tokens answer worse than one "
    "that is trained without random tokens?",
    does_not_show="That a method is unfaithful to this model: a retrained model may use other "
    "words that say the same, and the recursive form is about retrained models.",
    needs=("attention", "embeddings", "removal", "training data"),
)
def remove_and_retrain(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    training: Sequence[Example] = (),
    training_count: int | None = None,
    gold: Mapping[int, int] | None = None,
    methods: Sequence[str] = COMPARED,
    shares: Sequence[float] = SHARES,
    forms: Sequence[str] = tuple(FORMS),
    seeds: int = 1,
    start: str = "scratch",
    epochs: int = 5,
    rate: float | None = None,
    rows: int = 32,
    tell: Tell = silent,
) -> TrialOutcome:
    """Mask the highest tokens of training and test texts, train a copy on the rest, and test it.

    `training` has labelled texts, of which `training_count` are drawn, or all are taken; `gold` has
    the label of each test text by its number. Of the content tokens, `shares` are masked: those
    with the largest scores by size. `forms` are plain (the model's own scores decide) and recursive
    (each copy explains what is left, and more is masked). A copy is trained from `start` (scratch,
    weights, or the folder or hub id of pretrained weights) for some `epochs`, at a `rate`, on
    `rows` texts at once, from `seeds` draws. The model itself is never trained. The `scope`
    has no effect. `tell` is told how far it is.
    """
    subject = questions[0].subject
    _check_model(subject)
    amounts, plan = _checked_shares(shares), TrainingPlan(start, epochs, rate, rows)
    names, kinds = _checked_methods(methods), _checked_forms(forms)
    if not training:
        raise UsageError(
            "remove_and_retrain needs texts to train on: name them (training=, --train)"
        )
    if seeds < 1:
        raise UsageError(f"seeds of remove_and_retrain is 1 or more, not {seeds}")
    together = all(METHODS[name].fills for name in names)
    learned, notes = _training_texts(subject, sample(training, training_count, seed), together)
    tested = LabelledTexts(
        fill(questions) if together else questions, _test_labels(questions, gold)
    )
    relearning = Relearning(learned, tested, names, amounts, kinds, plan, seeds, tell)
    found = [relearning.run(seed_for(seed, number, RANDOM)) for number in range(seeds)]
    return outcome_of(relearning, found, notes)


def _check_model(subject: OpenModel) -> None:
    task = subject.task.name if subject.task else "no head"
    if task != "sequence classification" or subject.link != "softmax":
        raise UnsupportedModelError(
            f"remove_and_retrain is for models that choose one label for a text, and "
            f"{subject.name} ({task}) does not"
        )


def _checked_shares(shares: Sequence[float]) -> tuple[float, ...]:
    found = tuple(sorted(set(map(float, shares))))
    if not found or found[0] <= 0 or found[-1] >= 1:
        raise UsageError(f"shares are one or more numbers between 0 and 1, not {shares}")
    return found


def _checked_methods(methods: Sequence[str]) -> tuple[str, ...]:
    """The methods to compare; the control is always there, so it is not one of them."""
    if isinstance(methods, str):
        raise UsageError(f"give names in a list: [{methods!r}]")
    found = tuple(dict.fromkeys(METHODS[name].name for name in methods if name != RANDOM))
    if not found:
        raise UsageError(f"remove_and_retrain needs at least one method besides {RANDOM}")
    return found


def _checked_forms(forms: Sequence[str]) -> tuple[str, ...]:
    chosen = (forms,) if isinstance(forms, str) else tuple(dict.fromkeys(forms))
    for name in chosen:
        if name not in FORMS:
            raise UnknownNameError("form of remove_and_retrain", name, FORMS)
    return chosen or tuple(FORMS)


def _training_texts(
    subject: OpenModel, examples: Sequence[Example], together: bool
) -> tuple[LabelledTexts, tuple[str, ...]]:
    """The training texts as questions; those that the model cannot take are counted in a note."""
    texts: list[Any] = []
    labels: list[int] = []
    left_out: Counter[str] = Counter()
    for example in examples:
        try:
            label = find_label(subject.labels, example.label)
            encode_input(subject, example.text, CUT)
        except UsageError as problem:
            left_out[" ".join(str(problem).split())] += 1
        else:
            texts.append(example.text)
            labels.append(label)
    if len(set(labels)) < 2:
        reasons = "".join(f"; {count} left out: {why}" for why, count in left_out.most_common(2))
        raise UsageError(
            f"remove_and_retrain needs training texts of at least two labels, and there are "
            f"{len(texts)} texts of {len(set(labels))}{reasons}"
        )
    asked = ask(subject, texts, CUT)
    notes = tuple(f"{count} training texts left out: {why}." for why, count in left_out.items())
    return LabelledTexts(fill(asked) if together else asked, dict(enumerate(labels))), notes


def _test_labels(
    questions: Sequence[Question], gold: Mapping[int, int] | None
) -> Mapping[int, int]:
    texts = {text for question in questions for text in question.order}
    if gold is None or not texts <= gold.keys():
        raise UsageError(
            "remove_and_retrain needs the label of every test text, and the data have none that "
            "the model knows"
        )
    return {text: gold[text] for text in texts}
