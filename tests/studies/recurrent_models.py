"""A small untrained recurrent model with its texts, for the studies' oracles."""

from functools import cache

import torch

from attlas.models.recurrent.learning import build_classifier, labelled_table
from attlas.models.recurrent.words import build_vocabulary, random_vectors
from attlas.studies.recurrent.training import TrainedModel

TEXTS = [
    ("a warm and funny film", "yes"),
    ("not so good", "no"),
    ("dull , long and cold . not a film", "no"),
    ("good and warm", "yes"),
]


@cache
def trained(encoder="bilstm", **parts):
    """An untrained model, whose vectors are long enough for its answers to differ."""
    tokenizer = build_vocabulary(text for text, _ in TEXTS)
    vectors = 10 * random_vectors(len(tokenizer), 6, seed=1)
    sizes = {} if encoder == "none" else {"hidden_size": 8}
    model = build_classifier(
        tokenizer, ["no", "yes"], vectors, seed=3, encoder=encoder, **sizes, **parts
    ).eval()
    model.requires_grad_(False)
    table = labelled_table(model, tokenizer, TEXTS)
    start = torch.from_numpy(vectors)
    return TrainedModel(model, tokenizer, table, table, {"accuracy": 0.5, "auc": 0.5}, start)
