"""A model of your own, opened at its attention: an nn.Module that transformers does not know.

Run: python examples/own_model.py
"""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

import attlas

WORDS = ["<pad>", "<unk>", "a", "and", "film", "was", "the", "fine", "warm", "dull", "slow"]
TEXTS = [
    (f"the film was {first} and {second}", "good" if first in ("fine", "warm") else "bad")
    for first in ("fine", "warm", "dull", "slow")
    for second in ("fine", "warm", "dull", "slow")
    if (first in ("fine", "warm")) == (second in ("fine", "warm"))
]


class Weights(nn.Module):
    """The attention: a weight for each word, `[text, word, 1]`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, states: Tensor) -> Tensor:
        """One softmax over the words."""
        return torch.softmax(self.score(states), dim=1)


class Reader(nn.Module):
    """A GRU whose states are weighed and added up; one number says whether the text is good."""

    def __init__(self, words: int, width: int = 16) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.network = nn.GRU(width, width, batch_first=True)
        self.weights = Weights(width)
        self.output = nn.Linear(width, 1)

    def forward(self, ids: Tensor) -> Tensor:
        """The logit of the second label, `[text]`."""
        states, _ = self.network(self.words(ids))
        pooled = (self.weights(states) * states).sum(dim=1)
        return self.output(pooled).squeeze(-1)


def word_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer of these words."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>")


def trained(tokenizer: PreTrainedTokenizerFast) -> Reader:
    """A reader that has learned the texts."""
    torch.manual_seed(0)
    model = Reader(len(tokenizer))
    ids = torch.tensor([tokenizer(text)["input_ids"] for text, _ in TEXTS])
    labels = torch.tensor([float(label == "good") for _, label in TEXTS])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(ids), labels).backward()
        optimizer.step()
    return model.eval()


def main() -> None:
    """Open the model, look at its attention, explain a text, and rewrite the attention."""
    tokenizer = word_tokenizer()
    subject = attlas.adapt(trained(tokenizer), tokenizer, "weights", ["bad", "good"])
    text = "the film was dull and slow"
    print(subject.sites)
    print(subject.predict([text]))
    for method in ("raw_attention", "gradient_attention", "leave_one_out"):
        explanation = attlas.explain(subject, text, method)
        shown = zip(explanation.tokens, explanation.scores.round(3).tolist(), strict=True)
        print(method, dict(shown))
    with subject.tap(attlas.edits.uniform()):
        print("with even attention:", subject.predict([text])["probability"].round(3).tolist())
    print(attlas.try_trial(subject, TEXTS, "permutation", repeats=5))


if __name__ == "__main__":
    main()
