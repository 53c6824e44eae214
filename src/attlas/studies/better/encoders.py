"""A classifier of one encoder layer, torch's or the identifiable one, trained on word vectors."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from attlas.models.adapting import adapt
from attlas.models.recurrent.fitting import FitPlan, evaluate, fit
from attlas.models.recurrent.learning import labelled_table
from attlas.models.recurrent.words import PAD, build_vocabulary, random_vectors, read_vectors
from attlas.models.subject import Subject
from attlas.models.teaching.identifiable_layer import IdentifiableEncoderLayer
from attlas.studies.better.cases import ENCODER, IDENTIFIABLE
from attlas.training.examples import Parts

HEADS, INNER, DROPOUT, LONGEST = 8, 512, 0.1, 512
LAYERS = {ENCODER: nn.TransformerEncoderLayer, IDENTIFIABLE: IdentifiableEncoderLayer}
PLAN = FitPlan(rate=3e-4, by="accuracy")


class OneLayer(nn.Module):
    """Vectors of words and of places, one layer, and an answer that is read at the first token."""

    def __init__(self, kind: str, vectors: Tensor, labels: list[str]) -> None:
        super().__init__()
        width = vectors.shape[1]
        self.vectors = nn.Embedding.from_pretrained(vectors, freeze=False, padding_idx=PAD)
        self.places = nn.Parameter(torch.randn(LONGEST, width) * float(vectors.std()))
        layer: Any = LAYERS[kind]
        self.layer = layer(width, HEADS, INNER, DROPOUT, batch_first=True)
        self.answer = nn.Linear(width, len(labels))
        # What the training of recurrent models asks of a model.
        self.config = SimpleNamespace(
            num_labels=len(labels), label2id={label: n for n, label in enumerate(labels)}
        )

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.places.device

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Any:
        """The logits of each text."""
        states = self.vectors(input_ids) + self.places[: input_ids.shape[1]]
        states = self.layer(states, src_key_padding_mask=~attention_mask.bool())
        return SimpleNamespace(logits=self.answer(states[:, 0]))


def train_encoder(
    kind: str,
    parts: Parts,
    *,
    vectors: str | None,
    epochs: int | None,
    seed: int,
    device: torch.device,
) -> tuple[Subject, float]:
    """A classifier that has learned these texts, and its accuracy on the test texts."""
    tokenizer = build_vocabulary((text for text, _ in parts.train), LONGEST)
    table = (
        read_vectors(vectors, tokenizer, seed)
        if vectors
        else random_vectors(len(tokenizer), 8 * HEADS, seed)
    )
    labels = sorted({label for _, label in parts.train})
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        model = OneLayer(kind, torch.from_numpy(table), labels).to(device)
    taught, chosen, tested = (
        labelled_table(model, tokenizer, each) for each in (parts.train, parts.dev, parts.test)
    )
    fit(model, taught, chosen, replace(PLAN, seed=seed, epochs=epochs or PLAN.epochs))
    subject = adapt(
        model, tokenizer, "layer.self_attn", labels, kind="encoder", vectors="vectors", name=kind
    )
    return subject, evaluate(model, tested)["accuracy"]
