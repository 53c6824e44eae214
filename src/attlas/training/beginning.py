"""Where a fine-tuning begins: a pretrained transformer, with a head for the labels."""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, set_seed

from attlas.errors import ModelError, UnsupportedModelError, UsageError
from attlas.models.facts.places import check_weights, find_model, is_adapter, is_gguf
from attlas.models.load import hub_in_reach, load_config, load_processor, why_not
from attlas.models.loading.offloading import check_changeable
from attlas.models.subject import Subject
from attlas.training.examples import Labelled


def begin_from(
    base: str | Path | Subject, train: Labelled, labels: Sequence[str] | None, seed: int
) -> tuple[Any, Any]:
    """The classifier that learns and its tokenizer; a head that is missing is drawn by the seed."""
    wanted = list(labels) if labels else sorted({label for _, label in train})
    if not isinstance(base, Subject):
        with hub_in_reach():
            return _loaded(str(base), wanted, seed)
    if not set(wanted) <= set(base.labels):
        raise UsageError(f"{base.name} has other labels than these data: {', '.join(wanted)}")
    check_changeable(base.model, "training")
    return deepcopy(base.model).float().requires_grad_(True), base.tokenizer


def _loaded(base: str, wanted: list[str], seed: int) -> tuple[Any, Any]:
    place = find_model(base)
    if is_adapter(place) or is_gguf(place):
        raise UnsupportedModelError(f"{base} cannot be trained on: give the folder of a model")
    config = load_config(place, base, trust_remote_code=False)
    if config.model_type.startswith("attlas"):
        raise UnsupportedModelError(f"{base} is no transformer: train it anew by --model")
    check_weights(place, base, config)
    if not set(wanted) <= set(config.label2id):
        config.id2label = dict(enumerate(wanted))
        config.label2id = {label: number for number, label in enumerate(wanted)}
    tokenizer = load_processor(place, base, "tokenizer", trust_remote_code=False)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if getattr(config, "pad_token_id", None) is None:
        config.pad_token_id = tokenizer.pad_token_id
    return _classifier(place, base, config, seed), tokenizer


def _classifier(place: str, base: str, config: Any, seed: int) -> Any:
    set_seed(seed)
    try:
        return AutoModelForSequenceClassification.from_pretrained(
            place,
            config=config,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
            use_safetensors=True,
        )
    except Exception as problem:
        raise ModelError(why_not(base, problem)) from problem
