"""The architectures of the zoo: stock models of transformers, small."""

from __future__ import annotations

from typing import Any

import torch
from tiny import labels
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForSequenceClassification,
    PreTrainedModel,
)
from zoo.vocabulary import PAD

NAMES = ("NEGATIVE", "POSITIVE")
TAGS = ("O", "BAD", "GOOD")
WIDTH = 32


def bert(words: int, longest: int, *, layers: int = 1, spread: float = 0.1) -> PreTrainedModel:
    """A BERT that classifies."""
    return BertForSequenceClassification(_bert(words, longest, layers, spread, NAMES))


def tagger(words: int, longest: int, *, layers: int = 1) -> PreTrainedModel:
    """A BERT that tags."""
    return BertForTokenClassification(_bert(words, longest, layers, 0.1, TAGS))


def _bert(
    words: int, longest: int, layers: int, spread: float, names: tuple[str, ...]
) -> BertConfig:
    return BertConfig(
        vocab_size=words,
        hidden_size=WIDTH,
        num_hidden_layers=layers,
        num_attention_heads=1,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=longest,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=spread,
        pad_token_id=PAD,
        attn_implementation="eager",
        **labels(*names),
    )


def gpt2(words: int, longest: int, *, layers: int = 1) -> PreTrainedModel:
    """A GPT-2 that classifies."""
    return GPT2ForSequenceClassification(_gpt2(words, longest, layers, **labels(*NAMES)))


def gpt2_writer(words: int, longest: int, *, layers: int = 1) -> PreTrainedModel:
    """A GPT-2 that writes the next token."""
    return GPT2LMHeadModel(_gpt2(words, longest, layers))


def _gpt2(words: int, longest: int, layers: int, **named: Any) -> GPT2Config:
    return GPT2Config(
        vocab_size=words,
        n_embd=WIDTH,
        n_layer=layers,
        n_head=1,
        n_positions=longest,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        initializer_range=0.1,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="eager",
        **named,
    )


def llama(words: int, longest: int, *, layers: int = 1) -> PreTrainedModel:
    """A Llama that classifies."""
    return LlamaForSequenceClassification(
        LlamaConfig(
            vocab_size=words,
            hidden_size=WIDTH,
            num_hidden_layers=layers,
            num_attention_heads=1,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=longest,
            initializer_range=0.1,
            pad_token_id=PAD,
            bos_token_id=None,
            eos_token_id=None,
            attn_implementation="eager",
            **labels(*NAMES),
        )
    )


def seeded(build: Any, seed: int, *sizes: int) -> PreTrainedModel:
    """The model with weights drawn by the seed, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = build(*sizes)
    return model.eval()
