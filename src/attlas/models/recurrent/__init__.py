"""Attention models that are no transformers, in classes that transformers saves and loads."""

from functools import cache
from typing import Any

from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from attlas.models.recurrent.classifier import RecurrentForSequenceClassification
from attlas.models.recurrent.configuration import RecurrentConfig
from attlas.models.recurrent.writer import RecurrentForConditionalGeneration, RecurrentWriterConfig

CLASSES: dict[str, Any] = {
    each.__name__: each
    for each in (RecurrentForSequenceClassification, RecurrentForConditionalGeneration)
}


@cache
def register_classes() -> None:
    """Let transformers' Auto classes find these models by their config.json."""
    AutoConfig.register(RecurrentConfig.model_type, RecurrentConfig)
    AutoModelForSequenceClassification.register(RecurrentConfig, RecurrentForSequenceClassification)
    AutoConfig.register(RecurrentWriterConfig.model_type, RecurrentWriterConfig)
    AutoModelForSeq2SeqLM.register(RecurrentWriterConfig, RecurrentForConditionalGeneration)
