"""TargetCase: one row whose target is to be resolved, and what resolving it gives."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.models.facts.model_facts import ModelFacts
from attlas.tokens import Tokens

Prediction = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, eq=False)
class TargetCase:
    """One row to resolve: its tokens, its logits `[place, choice]`, and the target's own tokens."""

    subject: ModelFacts
    request: Request
    tokens: Tokens
    logits: Tensor
    chain: tuple[int, ...] = ()  # the target's token ids, where they are part of the input


Resolved = tuple[Target, Prediction, tuple[str, ...]]  # with notes
