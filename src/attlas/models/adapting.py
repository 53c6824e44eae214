"""Adapting: a user's own nn.Module becomes a Subject; the user names where its attention is."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import SequenceClassifierOutput

from attlas.errors import UnknownNameError, UsageError
from attlas.models.facts.sites import NAMED
from attlas.models.subject import Subject

ADAPTED_KINDS = ("pooling", "encoder", "decoder")
_TAKEN = ("input_ids", "attention_mask", "token_type_ids")
Calling = Callable[[Any, Tensor, Tensor], Any]


class AdaptedLayer(nn.Module):
    """A module of a user's own as one layer: from token ids to logits `[text, 1, label]`."""

    def __init__(self, inner: nn.Module, labels: int, calling: Calling | None) -> None:
        super().__init__()
        self.inner = inner
        self._labels = labels
        self._calling = calling
        names = set(inspect.signature(inner.forward).parameters)
        self._named = [name for name in _TAKEN if name in names]

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **others: Tensor) -> Tensor:
        """The logits of the inner module; of a single one, half of it and its opposite."""
        if self._calling is not None:
            output = self._calling(self.inner, input_ids, attention_mask)
        elif "input_ids" in self._named:
            given = {"input_ids": input_ids, "attention_mask": attention_mask, **others}
            output = self.inner(**{name: given[name] for name in self._named if name in given})
        else:
            output = self.inner(input_ids)
        return self._logits(output)[:, None]

    def _logits(self, output: Any) -> Tensor:
        found = output[0] if isinstance(output, (tuple, list)) else output
        found = getattr(found, "logits", found)
        if not isinstance(found, Tensor) or found.ndim not in (1, 2):
            raise UsageError(
                f"{type(self.inner).__name__} must return logits [text, label], not "
                f"{tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__}; "
                "call= can return them"
            )
        found = found[:, None] if found.ndim == 1 else found
        if found.shape[1] == 1 and self._labels == 2:
            return torch.cat([-found / 2, found / 2], dim=1)
        if found.shape[1] != self._labels:
            raise UsageError(
                f"{type(self.inner).__name__} gives {found.shape[1]} logits, and there are "
                f"{self._labels} labels"
            )
        return found


class AdaptedForSequenceClassification(PreTrainedModel):  # type: ignore[misc]
    """The dress in which a module of a user's own is opened: its labels, its vectors, its call.

    A text that is pooled is read out by the module as a whole, which is then its only layer; else
    the layers are those of the module itself.
    """

    config_class = PretrainedConfig
    main_input_name = "input_ids"

    def __init__(
        self, config: PretrainedConfig, layer: AdaptedLayer, vectors: nn.Module, kind: str
    ) -> None:
        super().__init__(config)
        self.whole = nn.ModuleList([layer]) if kind == "pooling" else layer
        self._parts = (layer, vectors)  # in a tuple, so that they are no further parts of this

    def get_input_embeddings(self) -> nn.Module:
        """The vectors of the words."""
        return self._parts[1]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **_: Any,
    ) -> SequenceClassifierOutput:
        """The logits of the inner module."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        others = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return SequenceClassifierOutput(logits=self._parts[0](input_ids, mask, **others)[:, 0])


def adapt(
    model: nn.Module,
    tokenizer: Any,
    attention: str | Sequence[str],
    labels: Sequence[str],
    *,
    kind: str = "pooling",
    vectors: str | None = None,
    call: Calling | None = None,
    name: str | None = None,
) -> Subject:
    """Open a classifier of your own, which is no model of transformers, at its attention.

    Args:
        model: Any module that maps token ids `[text, token]` to logits `[text, label]`. With two
            labels it may give one number a text, the logit of the second.
        tokenizer: A tokenizer of transformers; `PreTrainedTokenizerFast` makes one of a vocabulary.
        attention: The path of the module that computes the attention, as in
            `model.get_submodule(path)`, or several in the order of call. Its forward must take one
            softmax over the tokens.
        labels: The names of the labels.
        kind: pooling, if the attention pools a text into one vector; encoder or decoder, if its
            softmax is `[text, head, query, key]`.
        vectors: The path of the embedding; the only one if not given.
        call: How your model is called, if not by the names of its arguments:
            `call(model, ids, mask)` returns the logits.
        name: What to call the model in results.

    Your model stays as it is; of its places, those named last count. Methods and trials that are
    not defined for it say so (`attlas.check`).

    Example: `subject = attlas.adapt(model, tokenizer, "attention", ["negative", "positive"])`
    """
    if kind not in ADAPTED_KINDS:
        raise UnknownNameError("kind of attention", kind, ADAPTED_KINDS)
    paths = [attention] if isinstance(attention, str) else list(attention)
    named = [_part(model, path, "attention") for path in paths]
    for each in model.modules():  # another place may have been named before
        NAMED.pop(each, None)
    NAMED.update(dict.fromkeys(named, kind))
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise UsageError(
            f"the tokenizer is one of transformers, not {type(tokenizer).__name__}: "
            "PreTrainedTokenizerFast makes one of a vocabulary"
        )
    numbers = {label: number for number, label in enumerate(labels)}
    config = PretrainedConfig(id2label=dict(enumerate(labels)), label2id=numbers)
    config.pad_token_id = tokenizer.pad_token_id
    layer = AdaptedLayer(model, len(labels), call)
    adapted = AdaptedForSequenceClassification(config, layer, _vectors(model, vectors), kind)
    layer.training = adapted.training = model.training
    return Subject(adapted, tokenizer, name=name or type(model).__name__)


def _part(model: nn.Module, path: str, what: str) -> nn.Module:
    modules: dict[str, nn.Module] = dict(model.named_modules())
    if path not in modules or not path:
        raise UnknownNameError(f"place of the {what}", path, [each for each in modules if each])
    return modules[path]


def _vectors(model: nn.Module, path: str | None) -> nn.Module:
    if path is not None:
        return _part(model, path, "vectors")
    found = [name for name, each in model.named_modules() if isinstance(each, nn.Embedding)]
    if len(found) != 1:
        raise UsageError(
            f"{type(model).__name__} has {len(found)} embeddings ({', '.join(found)}): say which "
            "one holds the vectors of the words (vectors=)"
        )
    table: nn.Module = model.get_submodule(found[0])
    return table
