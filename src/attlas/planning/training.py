"""The plan of `train`: a few batches of the untrained model are timed."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch

from attlas.explaining.plan import Plan
from attlas.models.loading.devices import choose_device
from attlas.models.recurrent.fitting import FitPlan, label_loss
from attlas.models.recurrent.learning import (
    answer_table,
    build_classifier,
    build_writer,
    labelled_table,
    writing_loss,
)
from attlas.models.recurrent.words import build_characters, build_vocabulary, random_vectors
from attlas.objectives.support.objective import read_aims
from attlas.training.examples import Parts, read_parts
from attlas.training.recipes import WRITERS, TrainingRecipe, choose_plan, choose_recipe

SAMPLE = 512  # training texts that batches are timed on
TIMED = 4  # batches, after a first one
COPIES = 6  # of the weights: gradients, three numbers of Adam for each, the best epoch, themselves
ASKING = 0.3  # what a pass without gradients takes of one with them


def plan_train(given: Mapping[str, Any], _: Mapping[str, Any]) -> Plan:
    """What `train` would take; with word vectors, as much as with random ones of this size."""
    if given["base"] is not None:
        return _plan_finetune(given)
    said = {name: given[name] for name in ("epochs", "rows", "rate", "patience")}
    recipe = choose_recipe(given["model"], given["attention"])
    plan = choose_plan(recipe, given["seed"], said)
    parts = _parts(given)
    device = choose_device(given["device"])
    model, table, loss = _built(given, parts, recipe, device)
    seconds = _seconds_a_batch(model, table, loss, plan)
    batches = -(-len(parts.train) // plan.rows)
    judged = ASKING * len(parts.dev) / plan.rows
    weights = sum(each.numel() * each.element_size() for each in model.parameters())
    tokens = round(sum(table.lengths) / len(table) * len(parts.train))
    return Plan(
        verb="train",
        model=given["model"],
        device=str(device),
        texts=len(parts.train),
        tokens=tokens,
        longest=max(table.lengths),
        passes=None,
        seconds=plan.epochs * (batches + judged) * seconds,
        seconds_by_work={},
        peak=(COPIES - 1) * weights,
        weights=weights,
        at_once=plan.rows,
        measured=f"{TIMED} batches of {plan.rows} texts",
        notes=(f"{plan.epochs} epoch{'' if plan.epochs == 1 else 's'} at most", *parts.notes),
    )


def _parts(given: Mapping[str, Any]) -> Parts:
    asked = {name: given[name] for name in ("dev", "test", "labels", "count", "seed", "spans")}
    return read_parts(given["data"], **asked)


def _plan_finetune(given: Mapping[str, Any]) -> Plan:
    """What training a transformer would take: a few batches are timed, of a copy."""
    from attlas.training.beginning import begin_from
    from attlas.training.finetune import USUAL, make_trainer

    parts, device = _parts(given), choose_device(given["device"])
    said = {name: given[name] for name in ("epochs", "rows", "rate", "patience")}
    known = {name: value for name, value in said.items() if value is not None}
    plan = replace(USUAL, seed=given["seed"], **known)
    model, tokenizer = begin_from(given["base"], parts.train, given["labels"], plan.seed)
    some = replace(parts, train=parts.train[:SAMPLE], dev=parts.dev[:1], test=[])
    aims = read_aims(given["objectives"])
    with TemporaryDirectory() as folder:
        longest = given["longest"]
        trainer = make_trainer(
            model, tokenizer, some, plan, aims, Path(folder), longest, device, None
        )
        some_batches = list(islice(trainer.get_train_dataloader(), TIMED + 1))
        batches = (some_batches * (TIMED + 1))[: TIMED + 1]
        seconds = _seconds_of_trainer(trainer, batches)
    lengths = [len(each["input_ids"]) for each in trainer.train_dataset]
    steps = plan.epochs * -(-len(parts.train) // plan.rows)
    judged = plan.epochs * ASKING * len(parts.dev) / plan.rows
    weights = sum(each.numel() * each.element_size() for each in model.parameters())
    return Plan(
        verb="train",
        model=str(given["base"]),
        device=str(device),
        texts=len(parts.train),
        tokens=round(sum(lengths) / len(lengths) * len(parts.train)),
        longest=max(lengths),
        passes=None,
        seconds=(steps + judged) * seconds,
        seconds_by_work={},
        peak=3 * weights,  # gradients, and two numbers of Adam for each
        weights=weights,
        at_once=plan.rows,
        measured=f"{TIMED} batches of {plan.rows} texts",
        notes=(f"{plan.epochs} epoch{'' if plan.epochs == 1 else 's'} at most", *parts.notes),
    )


def _seconds_of_trainer(trainer: Any, batches: list[Any]) -> float:
    begun = perf_counter()
    model = trainer.model.train()
    for number, batch in enumerate(batches):
        if number == 1:
            begun = perf_counter()
        with torch.enable_grad():
            loss = trainer.compute_loss(model, trainer._prepare_inputs(batch))
            loss.backward()
        float(loss.detach())  # waits for the device
    return (perf_counter() - begun) / max(1, len(batches) - 1)


def _built(
    given: Mapping[str, Any], parts: Parts, recipe: TrainingRecipe, device: torch.device
) -> tuple[Any, Any, Any]:
    """An untrained model, a table of some training texts, and the loss."""
    some = parts.train[:SAMPLE]
    if given["model"] in WRITERS:
        characters = build_characters(part for pair in some for part in pair)
        writer = build_writer(characters, given["model"]).to(device)
        return writer, answer_table(writer, characters, some), writing_loss
    texts = (text for text, _ in parts.train)
    tokenizer = build_vocabulary(texts, given["longest"], given["fewest"])
    names = given["labels"] or sorted({label for _, label in parts.train})
    sizes = {**recipe.parts, "reads": parts.reads, "attention": given["attention"] or "additive"}
    vectors = random_vectors(len(tokenizer), given["vector_size"])
    model = build_classifier(tokenizer, names, vectors, **sizes).to(device)
    return model, labelled_table(model, tokenizer, some), label_loss()


def _seconds_a_batch(model: Any, table: Any, loss: Any, plan: FitPlan) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=plan.rate, amsgrad=True)
    begun = perf_counter()
    with torch.enable_grad():
        for number, rows in enumerate((table.drawn(plan.rows, (0, 0)) * (TIMED + 1))[: TIMED + 1]):
            if number == 1:  # the first one makes the numbers of Adam
                begun = perf_counter()
            optimizer.zero_grad()
            total = loss(model, table.batch(rows))
            total.backward()
            optimizer.step()
            float(total.detach())  # waits for the device
    return (perf_counter() - begun) / TIMED
