"""The verb `try_trial`: run one trial by itself, on a model and a data set."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import torch
import transformers

from attlas.auditing.texts import AuditTexts, read_training, usable_texts
from attlas.data.read_examples import ReadData, read_examples
from attlas.errors import UsageError
from attlas.models.asking.filling import fill
from attlas.models.asking.memory import telling_shortages
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.results.support.origin import Origin
from attlas.results.support.report_sections import DataRecord, LeftOutRow, TrialSection
from attlas.results.trial_result import TrialResult
from attlas.trials import TRIALS, Scope, Trial, TrialOutcome, figures_with_intervals
from attlas.verbs import verb
from attlas.version import __version__

LISTED = 20  # rows that were left out
HOLD_DATA = ("training", "examples")  # options that hold data: a result keeps only their names


@verb("running the trial")
@telling_shortages
def try_trial(
    subject: Subject,
    data: Any,
    trial: str,
    *,
    scope: Scope | str | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
    count: int | None = None,
    truncate: bool = False,
    seed: int = 0,
    watch: Watch = lambda step: None,
    **options: Any,
) -> TrialResult:
    """Run one trial by itself: an experiment on the attention of a model.

    Arguments:
        subject: The model.
        data: What `read_examples` takes: a file, a name, a DataFrame, a list.
        trial: The name of a trial; `list_trials()` lists them.
        scope: Which attention it may change: a `Scope`, or its kind: "readout", "layer", "all" or
            "token". By default that of the trial.
        text: The column of the text.
        pair: The column of a second text.
        label: The column of the label.
        spans: The column of the words that people marked.
        split: The split of a data set that has several.
        count: Draw this many texts; all by default.
        truncate: Cut texts that are too long for the model; they are left out otherwise.
        seed: Decides everything that is drawn at random.
        watch: Called with a `Step` whenever a new piece of work begins.
        options: Options of the trial, such as `repeats` of permutation.

    Example:
        >>> attlas.try_trial(attlas.load(), "reviews", "permutation", count=20, repeats=10)
    """
    check_subject(subject, "try_trial")
    chosen, where = TRIALS[trial], _scope(scope, TRIALS[trial])
    columns = {"text": text, "pair": pair, "label": label, "spans": spans, "split": split}
    watch(Step("reading the texts", 0, 2))
    read = read_examples(data, count=count, seed=seed, **columns)
    texts = usable_texts(subject, read, Request(truncate=truncate), seed, "a trial", 1)
    watch(Step(f"{chosen.name} on {len(texts)} texts", 1, 2))
    outcome = _run(
        chosen,
        where,
        texts,
        {**_telling(chosen, watch), **options, **_training(chosen, options), "seed": seed},
    )
    asked = {
        "data": data if isinstance(data, str) else None,
        "scope": None if scope is None else asdict(where),
        **columns,
        **{"count": count, "truncate": truncate or None},
    }
    origin = _origin(subject, chosen, {**options, "seed": seed}, asked)
    return _result(chosen, where, outcome, texts, read, origin)


def _origin(
    subject: Subject, trial: Trial, options: Mapping[str, Any], asked: Mapping[str, Any]
) -> Origin:
    return Origin(
        subject.name,
        subject.task.name if subject.task else "",
        trial.name,
        signed=False,
        paper=trial.paper,
        reading=trial.reading,
        options={
            name: value
            for name, value in options.items()
            if name not in HOLD_DATA or isinstance(value, str)
        },
        asked=asked,
        versions={
            "attlas": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        verb="try_trial",
    )


def _scope(scope: Scope | str | None, trial: Trial) -> Scope:
    if scope is None:
        return trial.scope
    if isinstance(scope, str):
        return Scope(scope)
    if not isinstance(scope, Scope):
        raise UsageError(f"scope is a Scope or the name of its kind, not {scope!r}")
    return scope


def _run(trial: Trial, scope: Scope, texts: AuditTexts, options: Mapping[str, Any]) -> TrialOutcome:
    numbers = range(len(texts))
    with torch.inference_mode(False):
        questions = texts.ask(numbers)
        asked = fill(questions) if trial.fills else questions
        found = trial.run(asked, scope, **{**_known_options(trial, texts), **options})
    return found.renumbered(numbers)


def _training(trial: Trial, options: Mapping[str, Any]) -> dict[str, Any]:
    """The examples to train on, if the trial takes them; they are read like any data."""
    if "training" not in options or "training" not in trial.options:
        return {}
    return {"training": read_training(options["training"]).examples}


def _telling(trial: Trial, watch: Watch) -> dict[str, Any]:
    """How a trial that takes long says how far it is."""
    if "tell" not in trial.options:
        return {}
    return {"tell": lambda what: watch(Step(f"{trial.name}: {what}", 1, 2))}


def _known_options(trial: Trial, texts: AuditTexts) -> dict[str, Any]:
    """The options that the data themselves answer: the labels and the marked words."""
    gold, examples = texts.gold, texts.examples
    if "examples" in trial.options:
        if gold is not None:
            names = [texts.subject.labels[number] for number in gold]
            pairs = zip(examples, names, strict=True)
            return {"examples": [replace(each, label=name) for each, name in pairs]}
        return {"examples": examples} if any(each.spans for each in examples) else {}
    return {"gold": dict(enumerate(gold))} if "gold" in trial.options and gold is not None else {}


def _result(
    trial: Trial,
    scope: Scope,
    outcome: TrialOutcome,
    texts: AuditTexts,
    read: ReadData,
    origin: Origin,
) -> TrialResult:
    groups = None if texts.groups is None else texts.groups[list(outcome.texts)]
    figures = figures_with_intervals(outcome, origin.options["seed"], groups)
    section = TrialSection(
        trial.name, str(scope), outcome.sentence, figures, trial.does_not_show, tuple(outcome.plots)
    )
    reasons = Counter(each.reason for each in texts.left_out)
    rows = (LeftOutRow(str(each.row), each.reason, each.shown) for each in texts.left_out[:LISTED])
    record = DataRecord(
        read.source, len(texts), left_out=dict(reasons.most_common()), left_out_rows=tuple(rows)
    )
    notes = (*outcome.notes, *texts.notes)
    return TrialResult(section, record, origin, notes, outcome.details)
