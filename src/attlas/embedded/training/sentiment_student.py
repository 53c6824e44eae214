"""The architecture of the embedded sentiment model, and how it is saved."""

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from attlas.embedded.training.sentiment_tokenizer import LONGEST, PAD, SPECIAL

LABELS = ("NEGATIVE", "POSITIVE")
NAMES: dict[str, Any] = {
    "id2label": dict(enumerate(LABELS)),
    "label2id": {label: index for index, label in enumerate(LABELS)},
}


def untrained(pieces: int, *, layers: int = 5, heads: int = 8) -> BertForSequenceClassification:
    """The stock architecture at random initialisation, its heads 32 wide."""
    config = BertConfig(
        vocab_size=pieces,
        hidden_size=32 * heads,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=96 * heads,
        max_position_embeddings=LONGEST,
        hidden_dropout_prob=0.05,
        attention_probs_dropout_prob=0.0,
        pad_token_id=PAD,
        **NAMES,
    )
    return BertForSequenceClassification(config)


def save(model: BertForSequenceClassification, tokenizer: Tokenizer, folder: Path) -> None:
    """Writes half-precision weights that load, and compute, in single precision."""
    model.half().save_pretrained(folder)
    model.config.dtype = "float32"
    model.config.save_pretrained(folder)
    # safetensors writes for the owner's eyes alone; an installed model is for every user.
    (folder / "model.safetensors").chmod(0o644)
    tokenizer.no_truncation()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=LONGEST, **SPECIAL
    ).save_pretrained(folder)
