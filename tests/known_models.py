"""Models whose exact workings are known, for tests of measures and trials.

They are BERTs without norms, with weights set by hand. In each, one feature of a word is its
weight, and another says whether it is marked; the logits of the two classes are −s and s.

bag_of_words       s is the sum of the weights of the words; the attention varies, but all its
                   values are the same and nothing reads them
ignores_attention  such a bag with three words
copies_attended    all attention of its one layer is on the marked word, and s is that word's weight
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import torch
from tiny import labels
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor, nn
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from attlas import Subject

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST = 512
WIDTH, HEADS = 8, 2
WEIGHT, MARK, SPARE = 0, 1, 2  # features; the others are noise for queries and keys
FAR = 1e4  # a softmax over scores so far apart is one-hot to the bit
# Sixty words whose weights all differ, between about −1.5 and 1.5, in no order.
WEIGHTS = {
    f"w{i:02d}": float(weight)
    for i, weight in enumerate(np.random.default_rng(7).permutation(np.linspace(-1.47, 1.51, 60)))
}
COPIED = {"good": 4.0, "bad": -4.0, "GOOD": 4.0, "BAD": -4.0}  # those in capitals are marked


class Summed(nn.Module):
    """Replaces the pooler: the sum over all tokens, so that missing tokens count nothing."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden.sum(1)


class First(nn.Module):
    """Replaces the pooler: the vector of the first token, unchanged."""

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden[:, 0]


def bag_of_words(weights: Mapping[str, float] = WEIGHTS) -> Subject:
    """A subject whose logit of POSITIVE is the sum of the weights of the words in a text."""
    return _bag(tuple(weights.items()))


def ignores_attention() -> Subject:
    """A bag of three words, whose answer does not depend on its attention."""
    return bag_of_words({"good": 2.0, "bad": -2.5, "fine": 1.0})


@cache
def copies_attended() -> Subject:
    """A subject that answers with the class of the word in capitals, which gets all attention."""
    words = _tokenizer(tuple(COPIED))
    model = _bert(len(words), layers=1)
    with torch.no_grad():
        table = model.bert.embeddings.word_embeddings.weight
        for word, weight in COPIED.items():
            row = table[words.convert_tokens_to_ids(word)]
            row[WEIGHT], row[MARK] = weight, float(word.isupper())
        only = model.bert.encoder.layer[0].attention
        only.self.query.bias[:: WIDTH // HEADS] = FAR  # every row asks for the mark
        only.self.key.weight[:: WIDTH // HEADS, MARK] = 1
        only.self.value.weight[0, WEIGHT] = 1
        only.output.dense.weight[SPARE, 0] = 1
        model.classifier.weight[:, SPARE] = torch.tensor([-1.0, 1.0])
    model.bert.pooler = First()
    return Subject(model, words, name="copies the attended word")


@cache
def _bag(weights: tuple[tuple[str, float], ...]) -> Subject:
    words = _tokenizer(tuple(word for word, _ in weights))
    model = _bert(len(words), layers=2)
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        table = model.bert.embeddings.word_embeddings.weight
        table[:, SPARE + 1 :] = torch.randn(table[:, SPARE + 1 :].shape, generator=random)
        table[words.pad_token_id] = 0
        for word, weight in weights:
            table[words.convert_tokens_to_ids(word), WEIGHT] = weight
        for layer in model.bert.encoder.layer:
            for linear in (layer.attention.self.query, layer.attention.self.key):
                linear.weight.normal_(0, 1, generator=random)
            layer.attention.self.value.bias.fill_(1)
            layer.attention.output.dense.weight[SPARE] = 1
        model.classifier.weight[:, WEIGHT] = torch.tensor([-1.0, 1.0])
    model.bert.pooler = Summed()
    return Subject(model, words, name="bag of words")


def _bert(vocabulary: int, layers: int) -> BertForSequenceClassification:
    """A BERT that passes its words on unchanged: no norms, and all weights zero."""
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=WIDTH,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        intermediate_size=WIDTH,
        max_position_embeddings=LONGEST,
        **labels("NEGATIVE", "POSITIVE"),
    )
    model = BertForSequenceClassification(config).eval()
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.LayerNorm):
                setattr(module, name, nn.Identity())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model


def _tokenizer(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words, between [CLS] and [SEP]."""
    vocabulary = {word: number for number, word in enumerate((*SPECIAL, *words))}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(word, vocabulary[word]) for word in ("[CLS]", "[SEP]")],
    )
    names = {f"{word[1:-1].lower()}_token": word for word in SPECIAL}
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=LONGEST, **names)


def text_of(count: int, seed: int, weights: Mapping[str, float] = WEIGHTS) -> str:
    """A text of `count` different words of a bag, drawn by the seed."""
    drawn = np.random.default_rng(seed).choice(sorted(weights), size=count, replace=False)
    return " ".join(drawn.tolist())


def true_scores(text: str, weights: Mapping[str, float] = WEIGHTS) -> np.ndarray:
    """The weight of each word of a text, for the class that the bag predicts."""
    found = np.array([weights[word] for word in text.split()])
    return found if found.sum() > 0 else -found
