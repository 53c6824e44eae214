"""Whether exchanging the keys of an attention does nothing but exchange its columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from attlas.models.asking.open_model import OpenModel
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap.eager_attention import run_eager
from attlas.models.tap.opening import opened_by
from attlas.models.tap.tap import Tap


def exchanges_columns(subject: OpenModel, inputs: Inputs) -> dict[str, bool]:
    """For each site, by name: whether keys in reverse give the same weights in reverse.

    They do not where a bias of position is added to the scores. A site whose module keeps its keys
    to itself is left out.
    """
    known = anatomy(subject.model)
    made = _ReversingTap(subject.model, known.owners, wants=lambda _: False)
    made.found = {}
    extra = {"use_cache": False} if "use_cache" in subject.parameters else {}
    with torch.no_grad(), evaluation_mode(subject.model), opened_by(made, known):
        subject.model(**inputs.arguments, **extra)
    return made.found


class _ReversingTap(Tap):
    found: dict[str, bool]

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Sequence[Tap],
    ) -> None:
        """Look at the call, and leave it to the model."""
        query, key, value = streams
        site = self._site(self._owners[id(module)], query.shape[1])
        turned = None if mask is None else mask.flip(-1)
        _, own = run_eager(module, query, key, value, mask, **given)
        _, other = run_eager(module, query, key.flip(-2), value, turned, **given)
        close = torch.allclose(own.flip(-1), other, rtol=1e-3, atol=1e-5)
        self.found[site.name] = close and not _is_biased(mask)


def _is_biased(mask: Tensor | None) -> bool:
    """Whether a mask does more than hide."""
    if mask is None or mask.dtype == torch.bool:
        return False
    return not bool(((mask == 0) | (mask <= torch.finfo(mask.dtype).min / 2)).all())
