"""Models of well-known shapes with random weights, and texts of random words for them."""

import torch
from transformers import BertConfig, BertForSequenceClassification
from transformers.utils import logging

import attlas
from attlas.models.asking.question import Question

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
