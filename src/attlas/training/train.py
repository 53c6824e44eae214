"""The verb `train`: an attention model learns labelled texts, and can be stopped."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from attlas.errors import UsageError, check_whole
from attlas.models.load import load
from attlas.models.loading.devices import choose_device
from attlas.models.recurrent.batches import TextTable
from attlas.models.recurrent.checkpoints import TENSORS
from attlas.models.recurrent.fitting import (
    FitPlan,
    Fitted,
    Loss,
    balanced_weight,
    evaluate,
    label_loss,
)
from attlas.models.recurrent.learning import Learned, judge_writer, learn, learn_writer
from attlas.models.subject import Subject
from attlas.objectives.support.objective import Aim, read_aims
from attlas.progress import Watch
from attlas.training.aiming import aimed_loss
from attlas.training.examples import Parts, read_parts
from attlas.training.recipes import WRITERS, choose_plan, choose_recipe
from attlas.training.records import (
    Trained,
    check_learned,
    finished,
    held_folder,
    teller,
    write_record,
)
from attlas.verbs import verb
from attlas.version import __version__


@verb("training")
def train(
    model: str = "bilstm",
    data: Any = "sst",
    out: str | Path | None = None,
    *,
    base: str | Path | None = None,
    objectives: str | Sequence[str | Aim] | None = None,
    attention: str | None = None,
    vectors: str | Path | None = None,
    vector_size: int = 256,
    dev: Any = None,
    test: Any = None,
    labels: Sequence[str] | None = None,
    spans: str | None = None,
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
    """Train an attention model: one that is no transformer, or a copy of a transformer.

    Args:
        model: bilstm, cnn, average (Jain and Wallace); lstm, orthogonal_lstm (Mohankumar et al.);
            flat, flat_cnn, flat_plain, hierarchical, hierarchical_cnn, hierarchical_plain (Serrano
            and Smith); bahdanau, luong, which write.
        data: A set by name, a file, or a list of (text, label). The writers learn `dates`.
        out: The folder of the model. A training that was stopped goes on from its last epoch, to
            the same weights. Without a folder, the model stays in memory.
        base: A transformer to train on instead: a folder or a built-in name. The model that is
            written opens anywhere.
        objectives: What to train for beside the labels, such as `rationale:weight=0.5,layer=-1`;
            `list_objectives` lists them.
        attention: additive, scaled_dot or uniform.
        vectors: A folder or wheel of word vectors; without it they are random, of `vector_size`.
        dev, test: Other data to choose the epoch by, and to test on.
        labels: Only texts with these labels, which the model then has in this order.
        spans: The column of marked words in a file.
        count: How many texts to train on, drawn by the seed.
        fewest: How often a word must occur to have a vector of its own.
        longest: The most tokens of a text; the rest is cut.
        epochs, rows, rate, patience: As in the paper of the model if not given; of a transformer
            3 epochs of 16 texts at once at 5e-5.
        seed: Decides all that is random: the same seed gives the same weights on one machine.

    Example:
        >>> import attlas
        >>> texts = [(f"a {word} film {end}", word) for word in ("fine", "dull") for end in "abcd"]
        >>> trained = attlas.train("average", texts, epochs=2, vector_size=8)
        >>> trained.subject
        Subject(average: sequence classification)
    """
    given = {"epochs": epochs, "rows": rows, "rate": rate, "patience": patience}
    for what, number in (("longest", longest), ("vector_size", vector_size), ("fewest", fewest)):
        check_whole(what, number)
    aims = read_aims(objectives)
    recipe = choose_recipe(model, attention)
    parts = read_parts(data, dev=dev, test=test, labels=labels, count=count, seed=seed, spans=spans)
    writes = base is None and model in WRITERS
    if writes != (parts.source == "dates"):
        raise UsageError(
            f"{model} writes, and learns dates: not {parts.source}"
            if writes
            else f"{base or model} chooses a label; dates are written: by {' or '.join(WRITERS)}"
        )
    if base is not None:
        from attlas.training.finetune import USUAL, finetune  # it loads the Trainer, which is slow

        said: dict[str, Any] = {name: each for name, each in given.items() if each is not None}
        return finetune(
            base,
            parts,
            replace(USUAL, seed=seed, **said),
            aims=aims,
            out=Path(out) if out else None,
            labels=labels,
            longest=longest,
            device=choose_device(device),
            watch=watch,
        )
    plan = choose_plan(recipe, seed, given)
    if model in WRITERS and aims:
        raise UsageError(f"{model} writes: objectives are for classifiers")
    work = _Training(model, parts, plan, Path(out) if out else None, choose_device(device), watch)
    how: dict[str, Any] = {"vectors": vectors, "vector_size": vector_size, "longest": longest}
    if model in WRITERS:
        return work.run(
            lambda **told: learn_writer(parts.train, parts.dev, attention=model, **told)
        )
    sizes = {**recipe.parts, "reads": parts.reads, "attention": attention or "additive"}
    return work.run(
        lambda **told: learn(
            parts.train,
            parts.dev,
            parts=sizes,
            labels=labels,
            fewest=fewest,
            loss=_aimed(aims),
            spans=parts.spans if aims else None,
            **how,
            **told,
        ),
        **{name: str(value) for name, value in how.items()},
        parts=json.loads(json.dumps(sizes)),
        fewest=fewest,
        **({"objectives": [str(each) for each in aims]} if aims else {}),
    )


def _aimed(aims: tuple[Aim, ...]) -> Any:
    """What makes the loss of a training with objectives; None without any."""
    if not aims:
        return None

    def make(tokenizer: Any, table: TextTable) -> Loss:
        return aimed_loss(label_loss(balanced_weight(table.labels.tolist())), aims, tokenizer)

    return make


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
        with held_folder(self.out):
            before = finished(self.out, {**asdict(self.plan), **about})
            if before is not None:
                return Trained(load(self.out, device=self.device), before)
            started = monotonic()
            found = learned(**self._told(), folder=self.out, about=about)
            trained = self._finish(found, about, monotonic() - started)
            found.save(self.out)
            write_record(self.out, trained.record)
            (self.out / TENSORS).unlink(missing_ok=True)
        return trained

    def _told(self) -> dict[str, Any]:
        return {"plan": self.plan, "device": self.device, "tell": teller(self.watch)}

    def _finish(self, found: Learned, about: dict[str, Any], seconds: float) -> Trained:
        check_learned(found.model)
        judged = judge_writer if self.model in WRITERS else evaluate
        test = judged(found.model, found.table(self.parts.test)) if self.parts.test else {}
        fitted: Fitted = found.fitted
        record = {
            **about,
            **{name: value for name, value in asdict(self.plan).items()},
            "best": fitted.best,
            "epochs": fitted.epochs,
            "test": test,
            "notes": [*self.parts.notes, *fitted.notes],
            "seconds": round(seconds, 1),
            "versions": {"attlas": __version__, "torch": torch.__version__},
            "plan": {**asdict(self.plan), **about},
        }
        return Trained(Subject(found.model, found.tokenizer, name=self.model), record)
