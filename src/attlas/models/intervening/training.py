"""Training: a copy of a classifier, begun afresh, learns the labels of texts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attlas.errors import AttlasError, ModelError, UnsupportedModelError, UsageError, is_shortage
from attlas.models.asking.filling import can_fill, filled
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.loading.offloading import check_changeable
from attlas.progress import Tell, silent
from attlas.shapes import TextValues

SCRATCH, WEIGHTS = "scratch", "weights"
RATES = {SCRATCH: 5e-4}  # of the first steps; less from weights that were trained already
USUAL_RATE = 5e-5
WARM = 0.1  # the share of the steps in which the rate grows
LONGEST_STEP = 1.0  # of all gradients together
ASKED_ROWS = 128  # texts that are asked about at once


@dataclass(frozen=True)
class TrainingPlan:
    """How a copy is trained: where it starts, how long, how fast, on how many texts at once.

    `start` is `scratch` (new random weights), `weights` (those of the model), or the folder or hub
    id of pretrained weights.
    """

    start: str = SCRATCH
    epochs: int = 5
    rate: float | None = None  # None: what is usual for this start
    rows: int = 32

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.rows < 1:
            raise UsageError(
                f"training takes 1 or more epochs and texts at once, not {self.epochs} epochs and "
                f"{self.rows} texts"
            )
        if self.rate is not None and self.rate <= 0:
            raise UsageError(f"the rate of training is above 0, not {self.rate}")

    @property
    def first_rate(self) -> float:
        """The rate of AdamW after it has grown."""
        return self.rate or RATES.get(self.start, USUAL_RATE)


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Texts as arguments of the model, and the number of each one's label."""

    arguments: Mapping[str, Tensor]
    labels: Tensor
    lengths: Tensor | None  # of filled texts

    def rows(self, rows: Sequence[int]) -> "LabelledBatch":
        """These texts, without the fillers that none of them needs."""
        index = torch.as_tensor(rows, dtype=torch.long, device=self.labels.device)
        taken = {name: value.index_select(0, index) for name, value in self.arguments.items()}
        if self.lengths is None:
            return LabelledBatch(taken, self.labels[index], None)
        lengths = self.lengths[index]
        most = int(lengths.max())
        cut = {name: value[:, :most] for name, value in taken.items()}
        return LabelledBatch(cut, self.labels[index], lengths)


def labelled_batches(
    questions: Sequence[Question], labels: Mapping[int, int]
) -> list[LabelledBatch]:
    """The texts of these questions with their labels, in one batch if the model can take that.

    `labels` are by the number of a text. The texts keep their order.
    """
    joined = [filled(questions)] if all(map(can_fill, questions)) else list(questions)
    found = []
    for question in joined:
        numbers = torch.tensor([labels[text] for text in question.order])
        arguments = question.inputs.arguments
        mask = arguments["attention_mask"] if len(joined) < len(questions) else None
        lengths = None if mask is None else mask.sum(dim=1)
        found.append(LabelledBatch(arguments, numbers.to(question.subject.device), lengths))
    return found


def fresh_copy(subject: OpenModel, start: str, seed: int) -> OpenModel:
    """The same subject with a model of its kind in float32, begun anew; the seed draws weights."""
    check_changeable(subject.model, "training a copy")
    with _random(seed):
        return subject.with_model(_begun(subject.model, start).float().to(subject.device).eval())


def _begun(model: Any, start: str) -> Any:
    if start == WEIGHTS:
        with evaluation_mode(model):
            return deepcopy(model)
    config, kind = deepcopy(model.config), type(model)
    try:
        begun = kind(config) if start == SCRATCH else kind.from_pretrained(start, config=config)
    except Exception as problem:
        reason = " ".join(str(problem).split())[:200]
        raise UnsupportedModelError(
            f"{kind.__name__} cannot start from {start}: {reason}"
        ) from None
    if _shapes(begun) != _shapes(model):
        raise UnsupportedModelError(
            f"{kind.__name__} cannot start from {start}: its weights have other shapes than the "
            f"model's; start={WEIGHTS!r} is possible"
        )
    return begun


def _shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in model.named_parameters()}


@contextmanager
def _random(seed: int) -> Iterator[None]:
    """Within the block, everything random in torch follows the seed; then all is as before."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def train(
    subject: OpenModel,
    batches: Sequence[LabelledBatch],
    plan: TrainingPlan,
    seed: int,
    tell: Tell = silent,
) -> None:
    """Train all weights of a copy on the labels by AdamW; the seed draws batches and dropout.

    The rate grows over the first tenth of the steps and then falls to zero.
    """
    model, order = subject.model, np.random.default_rng(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=plan.first_rate, weight_decay=0.01)
    steps = plan.epochs * sum(-(-len(each.labels) // plan.rows) for each in batches)
    pace = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: rate_at(step, steps))
    with _random(seed), torch.enable_grad(), _learning(model):
        for epoch in range(plan.epochs):
            tell(f"epoch {epoch + 1} of {plan.epochs}")
            for batch in _drawn(batches, plan.rows, order):
                optimiser.zero_grad()
                _loss(subject, batch, plan).backward()
                nn.utils.clip_grad_norm_(model.parameters(), LONGEST_STEP)
                optimiser.step()
                pace.step()


def rate_at(step: int, steps: int) -> float:
    """The rate of a step as a share of the highest rate."""
    warm = max(1, round(WARM * steps))
    return min((step + 1) / warm, (steps - step) / max(1, steps - warm))


@contextmanager
def _learning(model: nn.Module) -> Iterator[None]:
    """Within the block, dropout is on and all weights can learn; then the model is at rest."""
    model.train()
    model.requires_grad_(True)
    try:
        yield
    finally:
        model.zero_grad(set_to_none=True)
        model.requires_grad_(False)
        model.eval()


def _drawn(
    batches: Sequence[LabelledBatch], rows: int, order: np.random.Generator
) -> Iterator[LabelledBatch]:
    """All texts once, in small batches in a random order."""
    chosen = []
    for batch in batches:
        shuffled = order.permutation(len(batch.labels)).tolist()
        chosen += [(batch, shuffled[at : at + rows]) for at in range(0, len(shuffled), rows)]
    for place in order.permutation(len(chosen)):
        batch, some = chosen[place]
        yield batch.rows(some)


def _loss(subject: OpenModel, batch: LabelledBatch, plan: TrainingPlan) -> Tensor:
    try:
        logits = subject.run(batch.arguments)[:, -1]
    except ModelError as problem:
        raise UsageError(
            f"training at a rate of {plan.first_rate:g} fails, the weights grow without end: "
            "lower the rate"
        ) from problem
    except RuntimeError as problem:
        if is_shortage(problem):
            raise AttlasError(
                f"out of memory: {len(batch.labels)} texts cannot be trained on at once; lower rows"
            ) from problem
        raise
    return nn.functional.cross_entropy(logits, batch.labels)


@torch.no_grad()
def answers_right(subject: OpenModel, batches: Sequence[LabelledBatch]) -> TextValues:
    """Whether the model chooses the label of each text, as 0 and 1."""
    right = []
    with evaluation_mode(subject.model):
        for batch in batches:
            for start in range(0, len(batch.labels), ASKED_ROWS):
                some = batch.rows(range(start, min(start + ASKED_ROWS, len(batch.labels))))
                right.append(subject.run(some.arguments)[:, -1].argmax(dim=-1) == some.labels)
    return torch.cat(right).cpu().numpy().astype(np.float64)
