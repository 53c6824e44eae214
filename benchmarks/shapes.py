"""Models of well-known shapes with random weights, and texts of random words for them."""

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

import attlas
from attlas.models.asking.question import Question

WORDS, MOST = 1000, 131_072  # of the small vocabulary, and tokens at most
# Deciles of the tokens of SST-2's dev split, with special tokens, by the built-in tokenizer.
LENGTHS = (4, 12, 15, 18, 21, 24, 27, 30, 34, 39, 54)


def bert(device: str, dtype: torch.dtype = torch.float32, layers: int = 12) -> attlas.Subject:
    """A classifier in the shape of BERT-base."""
    logging.set_verbosity_error()
    torch.manual_seed(0)
    config = BertConfig(
        initializer_range=0.05, attn_implementation="sdpa", num_hidden_layers=layers
    )
    model = BertForSequenceClassification(config).eval().to(device, dtype)
    return attlas.Subject(model, attlas.load().tokenizer)


def texts_of(subject: attlas.Subject, lengths: list[int]) -> list[str]:
    """Texts of words that are one token each; a length includes the two special tokens."""
    words = sorted(word for word in subject.tokenizer.get_vocab() if word.isalpha())
    drawn = torch.Generator().manual_seed(0)
    return [
        " ".join(
            words[number] for number in torch.randint(len(words), (each - 2,), generator=drawn)
        )
        for each in lengths
    ]


def lengths_like_sst2(count: int) -> list[int]:
    """Lengths that are spread as those of SST-2's dev split, in a random order."""
    places = (torch.arange(count) + 0.5) / count * (len(LENGTHS) - 1)
    below = places.long()
    known = torch.tensor(LENGTHS, dtype=torch.float32)
    found = known[below] + (places - below) * (known[below + 1] - known[below])
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return found.round().long()[order].tolist()


def one_question(subject: attlas.Subject, text: str) -> Question:
    (question,) = subject.ask([text])
    return question


def ids_of(subject: attlas.Subject, text: str) -> torch.Tensor:
    return torch.tensor([subject.tokenizer(text)["input_ids"]], device=subject.device)


def smollm(implementation: str, layers: int) -> LlamaForCausalLM:
    """A decoder in the shape of SmolLM2-135M, with a small vocabulary."""
    logging.set_verbosity_error()
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=layers,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=WORDS,
        max_position_embeddings=MOST,
        tie_word_embeddings=True,
        attn_implementation=implementation,
    )
    return LlamaForCausalLM(config).eval().requires_grad_(False)


def number_words() -> PreTrainedTokenizerFast:
    """A tokenizer with a word for each number; `0` is the unknown word."""
    words = Tokenizer(WordLevel({str(i): i for i in range(WORDS)}, unk_token="0"))
    words.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="0", model_max_length=MOST)


def random_ids(tokens: int) -> list[int]:
    return torch.randint(WORDS, (tokens,), generator=torch.Generator().manual_seed(0)).tolist()
