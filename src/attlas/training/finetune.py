"""Fine-tuning: a transformer learns labelled texts, with objectives beside the labels.

The model that is written is one of transformers and opens anywhere; nothing of Attlas is in it.
"""

import json
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import numpy as np
import torch
from transformers import (
    EarlyStoppingCallback,
    TrainerCallback,
    TrainingArguments,
)

from attlas.data.example import Example
from attlas.mathematics.ranking import roc_auc
from attlas.models.facts.places import check_installed
from attlas.models.load import load
from attlas.models.recurrent.fitting import FitPlan, say_resumed
from attlas.models.subject import Subject
from attlas.objectives.support.objective import Aim
from attlas.progress import Watch
from attlas.results.support.tables import read_json
from attlas.training.beginning import begin_from
from attlas.training.examples import Labelled, Parts, read_parts
from attlas.training.objective_trainer import ObjectiveTrainer, marked_features
from attlas.training.records import (
    Trained,
    check_learned,
    epochs_done,
    finished,
    held_folder,
    last_checkpoint,
    not_ours,
    refuse_another,
    seal_checkpoint,
    teller,
    write_record,
    writing,
)
from attlas.version import __version__
from attlas.views import write_whole

USUAL = FitPlan(epochs=3, rows=16, rate=5e-5, decay=0.01, by="accuracy")
WARM = 0.1  # the share of the steps in which the rate grows
STATE, PLAN = "checkpoints", "plan.json"


def finetune(
    base: str | Path | Subject,
    parts: Parts,
    plan: FitPlan = USUAL,
    *,
    aims: tuple[Aim, ...] = (),
    out: Path | None = None,
    labels: Sequence[str] | None = None,
    longest: int | None = None,
    device: torch.device,
    watch: Watch | None = None,
) -> Trained:
    """Train a copy of a classifier, or a classifier on top of a model without one.

    The epoch that is best on the dev texts is kept. With `out`, a training that was stopped goes
    on from its last whole epoch, to the same weights.
    """
    check_installed("accelerate", "a transformer is trained by the Trainer of transformers")
    name = str(base) if isinstance(base, (str, Path)) else base.name
    about = {"base": name, "data": parts.source, "objectives": [str(each) for each in aims]}
    about |= {"longest": longest, "labels": list(labels) if labels else None}
    about["texts"] = {part: len(getattr(parts, part)) for part in ("train", "dev", "test")}
    told = json.loads(json.dumps({**asdict(plan), **about}))
    with ExitStack() as stack:
        if out is None:
            folder = Path(stack.enter_context(TemporaryDirectory()))
        else:
            folder = out
            stack.enter_context(held_folder(folder))
            before = finished(folder, told)
            if before is not None:
                return Trained(load(folder, device=device), before)
            _begin(folder / STATE, told)
        started = monotonic()
        model, tokenizer = begin_from(base, parts.train, labels, plan.seed)
        trainer = make_trainer(
            model, tokenizer, parts, plan, aims, folder / STATE, longest, device, watch
        )
        trainer.train(resume_from_checkpoint=_found(folder, plan))
        check_learned(model)
        record = {**about, **asdict(plan), **_figures(trainer, parts, longest)}
        record |= {"notes": list(parts.notes), "seconds": round(monotonic() - started, 1)}
        record |= {"versions": {"attlas": __version__, "torch": torch.__version__}, "plan": told}
        model.eval()
        if out is not None:
            with writing(folder):
                model.save_pretrained(folder)
                tokenizer.save_pretrained(folder)
                write_record(folder, record)
            shutil.rmtree(folder / STATE)
    return Trained(Subject(model, tokenizer, name=name), record)


def masked_copy(
    subject: Subject, data: Any, folder: Path | None = None, watch: Watch | None = None
) -> Subject:
    """A copy of a classifier that has learned masked words too, on labelled texts.

    With a folder, it is written there, named by it, and one that was written before is read.
    """
    trained = finetune(
        subject,
        read_parts(data),
        aims=(Aim("masked"),),
        out=folder,
        device=subject.device,
        watch=watch,
    )
    # A report advises commands: a name with a folder behind it is one that they can be given.
    name = str(folder) if folder else f"{subject.name}, fine-tuned with masked words"
    return Subject(trained.subject.model, trained.subject.tokenizer, name=name)


def _begin(folder: Path, told: dict[str, Any]) -> None:
    """Note what is trained; another training that came to its first checkpoint is an error."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise not_ours(folder)
    folder.mkdir(exist_ok=True)
    place = folder / PLAN
    if place.exists() and last_checkpoint(folder) is not None:
        refuse_another(folder.parent, read_json(place), told)
    write_whole(place, json.dumps(told))


def _found(folder: Path, plan: FitPlan) -> str | None:
    """The checkpoint that a training goes on from, if there is one; whoever waits is told."""
    place = last_checkpoint(folder / STATE)
    if place is not None:
        say_resumed(folder, epochs_done(place), plan)
    return place


def make_trainer(
    model: Any,
    tokenizer: Any,
    parts: Parts,
    plan: FitPlan,
    aims: tuple[Aim, ...],
    folder: Path,
    longest: int | None,
    device: torch.device,
    watch: Watch | None,
) -> Any:
    """The Trainer of a plan: every epoch is asked about the dev texts and written."""
    callbacks: list[Any] = [_Told(watch, plan.epochs)]
    if plan.patience is not None:
        callbacks.append(EarlyStoppingCallback(plan.patience))
    each = {"per_device_train_batch_size": plan.rows, "per_device_eval_batch_size": 2 * plan.rows}
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=plan.epochs,
        learning_rate=plan.rate,
        weight_decay=plan.decay,
        warmup_steps=WARM,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=1,  # beside the best
        load_best_model_at_end=True,
        metric_for_best_model=plan.by,
        greater_is_better=True,
        restore_callback_states_from_checkpoint=True,
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=device.type == "cpu",
        seed=plan.seed,
        **each,
    )
    trainer = _Writing(
        model=model,
        args=arguments,
        train_dataset=_features(model, tokenizer, parts, parts.train, longest),
        eval_dataset=_by_length(_features(model, tokenizer, parts, parts.dev, longest)),
        processing_class=tokenizer,
        compute_metrics=_judge,
        callbacks=callbacks,
        objectives=aims,
    )
    for printing in ("PrinterCallback", "ProgressCallback"):
        trainer.remove_callback(_callback(trainer, printing))
    return trainer


def _callback(trainer: Any, name: str) -> Any:
    found = (each for each in trainer.callback_handler.callbacks if type(each).__name__ == name)
    return next(found, type("Absent", (TrainerCallback,), {}))


def _features(
    model: Any, tokenizer: Any, parts: Parts, examples: Labelled, longest: int | None
) -> list[dict[str, Any]]:
    """Texts as the Trainer takes them, none longer than the model reads."""
    marked = [Example(text, label, parts.spans.get(text, ())) for text, label in examples]
    most = Subject(model, tokenizer).max_tokens
    longest = most if longest is None else min(longest, most)
    features = marked_features(tokenizer, marked, model.config.label2id, longest=longest)
    if not parts.spans:
        for each in features:
            del each["marks"]
    return features


def _by_length(features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Texts that are only asked about, in an order in which little is filled up."""
    return sorted(features, key=lambda each: len(each["input_ids"]))


def _judge(prediction: Any) -> dict[str, float]:
    """The accuracy and the area under the ROC curve: of the second label, or the mean of all."""
    logits, labels = np.asarray(prediction.predictions), np.asarray(prediction.label_ids)
    each = [1] if logits.shape[1] == 2 else range(logits.shape[1])
    sure = torch.from_numpy(logits).double().softmax(dim=-1).numpy()
    areas = [roc_auc(sure[:, label], labels == label) for label in each]
    known = [area for area in areas if not np.isnan(area)]
    figures = {"accuracy": float((logits.argmax(axis=1) == labels).mean())}
    return figures | ({"auc": float(np.mean(known))} if known else {})


def _figures(trainer: Any, parts: Parts, longest: int | None) -> dict[str, Any]:
    """The figures of each epoch on the dev texts, which was kept, and those on the test texts."""
    logged = [each for each in trainer.state.log_history if "eval_accuracy" in each]
    epochs = [_named(each) for each in logged]
    steps = [each["step"] for each in logged]
    best = steps.index(trainer.state.best_global_step)
    test: dict[str, float] = {}
    if parts.test:
        asked = _features(trainer.model, trainer.processing_class, parts, parts.test, longest)
        test = _named(trainer.predict(_by_length(asked), metric_key_prefix="eval").metrics)
    return {"best": best, "epochs": epochs, "test": test}


def _named(metrics: dict[str, Any]) -> dict[str, float]:
    names = ("accuracy", "auc")
    return {name: metrics[f"eval_{name}"] for name in names if f"eval_{name}" in metrics}


class _Writing(ObjectiveTrainer):  # type: ignore[misc, valid-type]
    """A Trainer that says in one line why its state cannot be written."""

    def _save_checkpoint(self, *given: Any, **named: Any) -> None:
        with writing(Path(self.args.output_dir)):
            super()._save_checkpoint(*given, **named)


class _Told(TrainerCallback):  # type: ignore[misc]
    """Tells whoever watches how far a training is, and seals its checkpoints."""

    def __init__(self, watch: Watch | None, epochs: int) -> None:
        self._tell, self._epochs = teller(watch), epochs

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step is done."""
        epoch = min(int(state.epoch or 0) + 1, self._epochs)
        self._tell(f"epoch {epoch} of {self._epochs}", state.global_step, state.max_steps)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A checkpoint is written."""
        seal_checkpoint(Path(args.output_dir) / f"checkpoint-{state.global_step}")
