"""TrainingStep: what an objective is handed of one batch of a training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.tap.call import Call
from attlas.models.teaching.training_tap import KeyChange, TrainingTap
from attlas.shapes import BatchScores, TokenKinds, TokenScores


@dataclass(frozen=True, eq=False)
class TrainingStep:
    """One batch on its way through a model that learns.

    `run` asks the model again: it takes arguments and a change of keys, and returns the logits in
    the graph.
    """

    tap: TrainingTap  # with the attention of the pass
    arguments: Mapping[str, Tensor]  # of the model, without the labels
    labels: Tensor
    special: TokenKinds  # which tokens are special or fill the text up
    marks: TokenScores | None  # of words that people marked; a row of zeros has none
    reads: str  # which tokens the answer is read from: first, last or all
    run: Callable[[Mapping[str, Tensor], KeyChange | None], Tensor]
    tokenizer: Any = None

    @property
    def calls(self) -> list[Call]:
        """The attention of the pass, before dropout and in the graph."""
        return self.tap.seen.calls

    @property
    def seen(self) -> TokenKinds:
        """Which tokens belong to the texts, special ones included."""
        mask = self.arguments.get("attention_mask")
        ids = self.arguments["input_ids"]
        return torch.ones_like(ids).bool() if mask is None else mask.bool()

    @property
    def content(self) -> TokenKinds:
        """Which tokens belong to the texts and are not special."""
        return self.seen & ~self.special

    def needed_marks(self, name: str) -> TokenScores:
        """The marks; raises if the data have none."""
        if self.marks is None:
            raise UsageError(
                f"{name} needs texts with marked words, and these data have none: give a column of "
                "spans, or a set such as eraser_movies"
            )
        return self.marks

    @cached_property
    def random(self) -> torch.Generator:
        """What an objective draws from; it follows the seed of the training."""
        return torch.Generator().manual_seed(int(torch.randint(2**31, ()).item()))

    def losses(
        self,
        arguments: Mapping[str, Tensor] | None = None,
        change: KeyChange | None = None,
    ) -> BatchScores:
        """The loss of each text with other arguments, or with other keys."""
        if self.labels.is_floating_point() or self.labels.ndim != 1:
            raise UsageError("this objective is for classifiers with one label for each text")
        logits = self.run(arguments or self.arguments, change)
        return torch.nn.functional.cross_entropy(
            in_single(logits), self.labels.to(logits.device), reduction="none"
        )


def in_single(values: Tensor) -> Tensor:
    """Half precision in single precision; anything else as it is."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
