"""The verb `train`: a recurrent attention model learns labelled texts, and can be stopped."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from attlas.errors import UnknownNameError, UsageError
from attlas.models.load import choose_device, load
from attlas.models.recurrent.checkpoints import TENSORS
from attlas.models.recurrent.configuration import ATTENTIONS
from attlas.models.recurrent.fitting import FitPlan, Fitted, evaluate
from attlas.models.recurrent.learning import Learned, judge_writer, learn, learn_writer
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.results.support.lock import locked
from attlas.training.examples import Parts, read_parts
from attlas.verbs import verb
from attlas.version import __version__

RECORD, LOCK = "training.json", "training.lock"
WRITERS = ("bahdanau", "luong")
_WIDE = {"hidden_size": 100, "attention_size": 100, "dropout": 0.44, "output_dropout": 0.35}
_SENTENCES = {**_WIDE, "sentence_dropout": 0.22, "hierarchical": True}
_CONVOLUTIONS = {"encoder": "cnn", "kernels": (3, 5)}
# Jain and Wallace, and Serrano and Smith, in this order.
_EIGHT = FitPlan()
_UNTIL_WORSE = FitPlan(
    epochs=60, rows=64, rate=4e-4, decay=0.0, patience=5, slower=0.5, by="accuracy"
)
_WRITING = FitPlan(epochs=10, rows=32, rate=1e-3, decay=0.0, patience=3, by="exact match")


@dataclass(frozen=True)
class TrainingRecipe:
    """A model by name: what it is, its parts, and how it is trained."""

    about: str
    parts: Mapping[str, Any] = field(default_factory=dict)
    plan: FitPlan = _EIGHT


RECIPES = {
    "bilstm": TrainingRecipe("an LSTM in both directions", {"encoder": "bilstm"}),
    "cnn": TrainingRecipe("convolutions of four widths", {"encoder": "cnn"}),
    "average": TrainingRecipe("each word by itself", {"encoder": "average"}),
    "flat": TrainingRecipe(
        "a GRU over the whole text (FLANrnn)", {**_WIDE, "encoder": "bigru"}, _UNTIL_WORSE
    ),
    "flat_cnn": TrainingRecipe(
        "convolutions over the whole text (FLANconv)", {**_WIDE, **_CONVOLUTIONS}, _UNTIL_WORSE
    ),
    "flat_plain": TrainingRecipe(
        "vectors without an encoder", {**_WIDE, "encoder": "none"}, _UNTIL_WORSE
    ),
    "hierarchical": TrainingRecipe(
        "GRUs over words, then sentences (HANrnn)",
        {**_SENTENCES, "encoder": "bigru"},
        _UNTIL_WORSE,
    ),
    "hierarchical_cnn": TrainingRecipe(
        "convolutions over words, then sentences (HANconv)",
        {**_SENTENCES, **_CONVOLUTIONS},
        _UNTIL_WORSE,
    ),
    "hierarchical_plain": TrainingRecipe(
        "attention over words, then sentences, without encoders",
        {**_SENTENCES, "encoder": "none"},
        _UNTIL_WORSE,
    ),
    "bahdanau": TrainingRecipe("an encoder–decoder that attends before each step", {}, _WRITING),
    "luong": TrainingRecipe("an encoder–decoder that attends after each step", {}, _WRITING),
}


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, and the figures of its training."""

    subject: Subject
    record: dict[str, Any]  # what was trained on what and how, and the figures of each epoch

    @property
    def test(self) -> dict[str, float]:
        """The figures on the test texts; empty if there are none."""
        found: dict[str, float] = self.record["test"]
        return found

    def lines(self) -> list[str]:
        """The figures as lines: each epoch, then the test texts."""
        kept, found = self.record["best"], []
        for number, figures in enumerate(self.record["epochs"]):
            mark = "  (kept)" if number == kept else ""
            found.append(f"epoch {number + 1}: dev {_shown(figures)}{mark}")
        if self.test:
            found.append(f"test ({self.record['texts']['test']} texts): {_shown(self.test)}")
        return [*self.record["notes"], *found]


def _shown(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in figures.items())


def choose_recipe(model: str, attention: str | None) -> TrainingRecipe:
    """The recipe of a model; raises if it, or this attention of it, is unknown."""
    recipe = RECIPES.get(model)
    if recipe is None:
        raise UnknownNameError("model to train", model, RECIPES)
    if attention is not None and (attention not in ATTENTIONS or model in WRITERS):
        raise UnknownNameError("attention", attention, [] if model in WRITERS else ATTENTIONS)
    return recipe


def choose_plan(recipe: TrainingRecipe, seed: int, given: Mapping[str, Any]) -> FitPlan:
    """How a recipe is trained, with what the user said in place of it."""
    said = {name: value for name, value in given.items() if value is not None}
    return replace(recipe.plan, seed=seed, **said)


@verb("training")
def train(
    model: str = "bilstm",
    data: Any = "sst",
    out: str | Path | None = None,
    *,
    attention: str | None = None,
    vectors: str | Path | None = None,
    vector_size: int = 256,
    dev: Any = None,
    test: Any = None,
    labels: Sequence[str] | None = None,
    count: int | None = None,
    fewest: int = 1,
    longest: int = 512,
    epochs: int | None = None,
    rows: int | None = None,
    rate: float | None = None,
    patience: int | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    watch: Watch | None = None,
) -> Trained:
    """Train an attention model that is no transformer.

    Args:
        model: bilstm, cnn, average (Jain and Wallace); flat, flat_cnn, flat_plain, hierarchical,
            hierarchical_cnn, hierarchical_plain (Serrano and Smith); bahdanau, luong, which write.
        data: A set by name, a file, or a list of (text, label). The writers learn `dates`.
        out: The folder of the model. A training that was stopped goes on from its last epoch, to
            the same weights. Without a folder, the model stays in memory.
        attention: additive, scaled_dot or uniform.
        vectors: A folder or wheel of word vectors; without it they are random, of `vector_size`.
        dev, test: Other data to choose the epoch by, and to test on.
        labels: Only texts with these labels, which the model then has in this order.
        count: How many texts to train on, drawn by the seed.
        fewest: How often a word must occur to have a vector of its own.
        longest: The most tokens of a text; the rest is cut.
        epochs, rows, rate, patience: As in the paper of the model if not given.
        seed: Decides all that is random: the same seed gives the same weights on one machine.

    Example:
        >>> import attlas
        >>> texts = [("a fine film", "good"), ("a dull film", "bad")] * 8
        >>> trained = attlas.train("average", texts, epochs=2, vector_size=8)
        >>> trained.subject
        Subject(average: sequence classification)
    """
    given = {"epochs": epochs, "rows": rows, "rate": rate, "patience": patience}
    recipe = choose_recipe(model, attention)
    plan = choose_plan(recipe, seed, given)
    parts = read_parts(data, dev=dev, test=test, labels=labels, count=count, seed=seed)
    if (model in WRITERS) != (parts.source == "dates") and model in WRITERS:
        raise UsageError(f"{model} writes, and learns dates: not {parts.source}")
    work = _Training(model, parts, plan, Path(out) if out else None, choose_device(device), watch)
    how: dict[str, Any] = {"vectors": vectors, "vector_size": vector_size, "longest": longest}
    if model in WRITERS:
        return work.run(
            lambda **told: learn_writer(parts.train, parts.dev, attention=model, **told)
        )
    sizes = {**recipe.parts, "reads": parts.reads, "attention": attention or "additive"}
    return work.run(
        lambda **told: learn(
            parts.train, parts.dev, parts=sizes, labels=labels, fewest=fewest, **how, **told
        ),
        **{name: str(value) for name, value in how.items()},
        parts=json.loads(json.dumps(sizes)),
        fewest=fewest,
    )


@dataclass(frozen=True, eq=False)
class _Training:
    """One training: what is trained on what, where it is kept, and who watches."""

    model: str
    parts: Parts
    plan: FitPlan
    out: Path | None
    device: torch.device
    watch: Watch | None

    def run(self, learned: Any, **about: Any) -> Trained:
        """Train, or go on, or read what was trained before."""
        about = {"model": self.model, "data": self.parts.source, **about}
        about["texts"] = {name: len(getattr(self.parts, name)) for name in ("train", "dev", "test")}
        if self.out is None:
            return self._finish(learned(**self._told()), about, 0.0)
        self.out.mkdir(parents=True, exist_ok=True)
        with locked(self.out / LOCK):
            before = _finished(self.out, {**asdict(self.plan), **about})
            if before is not None:
                return Trained(load(self.out, device=self.device), before)
            started = monotonic()
            found = learned(**self._told(), folder=self.out, about=about)
            trained = self._finish(found, about, monotonic() - started)
            found.save(self.out)
            (self.out / RECORD).write_text(json.dumps(trained.record, indent=1))
            (self.out / TENSORS).unlink(missing_ok=True)
        (self.out / LOCK).unlink(missing_ok=True)
        return trained

    def _told(self) -> dict[str, Any]:
        return {"plan": self.plan, "device": self.device, "tell": _teller(self.watch)}

    def _finish(self, found: Learned, about: dict[str, Any], seconds: float) -> Trained:
        judged = judge_writer if self.model in WRITERS else evaluate
        test = judged(found.model, found.table(self.parts.test)) if self.parts.test else {}
        fitted: Fitted = found.fitted
        record = {
            **about,
            **{name: value for name, value in asdict(self.plan).items()},
            "best": fitted.best,
            "epochs": fitted.epochs,
            "test": test,
            "notes": list(self.parts.notes),
            "seconds": round(seconds, 1),
            "versions": {"attlas": __version__, "torch": torch.__version__},
            "plan": {**asdict(self.plan), **about},
        }
        return Trained(Subject(found.model, found.tokenizer, name=self.model), record)


def _finished(folder: Path, plan: dict[str, Any]) -> dict[str, Any] | None:
    """The record of the same training, if it is over; another one in the folder is an error."""
    place = folder / RECORD
    if not place.is_file():
        return None
    record: dict[str, Any] = json.loads(place.read_text())
    if record["plan"] != json.loads(json.dumps(plan)):
        raise UsageError(f"{folder} holds another training: choose another folder, or remove it")
    return record


def _teller(watch: Watch | None) -> Any:
    """Tell a watcher how far the training is, with an estimate of what is left."""
    begun: list[tuple[float, int]] = []

    def tell(what: str, done: int, total: int) -> None:
        if watch is None:
            return
        begun.append((monotonic(), done)) if not begun else None
        passed, gone = monotonic() - begun[0][0], done - begun[0][1]
        left = passed / gone * (total - done) if gone else None
        watch(Step(what, done, total, left))

    return tell
