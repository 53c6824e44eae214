"""Measure a sentiment model on held-out text and writes its card."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor

from attlas.embedded.training.sentiment_data import read_rows, shipped
from attlas.embedded.training.sentiment_tokenizer import Packed, continuations, pack
from attlas.embedded.training.sentiment_training import hide, predict_logits

TEMPLATE = Path(__file__).parent / "sentiment_card.md"
ROOM = 32_768
SHARES = (0.15, 0.3, 0.5)
DRAWS = 5
SENTENCES = (
    "a great film",
    "not a great film",
    "not a great film, but I could not look away",
    "the film was not good",
    "never boring",
    "boring and far too long",
    "I was hoping for more",
    "a film",
    "[MASK] [MASK] [MASK] [MASK]",
)


def accuracies(model: Any, tokenizer: Tokenizer, corpus: Path, *, masked: bool) -> dict[str, float]:
    """The share of held-out texts labelled rightly, by set; `masked` adds SST-2 with words hidden.

    The model is asked on the device it is on.
    """
    rows, figures = [*read_rows(corpus / "examined.xz"), *shipped()], {}
    for source in dict.fromkeys(row.source for row in rows):
        chosen = [row for row in rows if row.source == source]
        texts = pack(tokenizer, [row.text for row in chosen]).to(str(model.device))
        labels = torch.tensor([row.target for row in chosen], device=model.device) > 0.5
        figures[source] = accuracy(model, texts, labels)
        if masked and source == "sst2":
            continues = continuations(tokenizer)
            for share in SHARES:
                figures[f"sst2 masked {share}"] = (
                    sum(
                        accuracy(model, masked_words(texts, continues, share, draw), labels)
                        for draw in range(DRAWS)
                    )
                    / DRAWS
                )
    return {name: round(value, 4) for name, value in figures.items()}


def accuracy(model: Any, texts: Packed, labels: Tensor) -> float:
    """The share of texts on the right side."""
    logits, _ = predict_logits(model, texts, fill=0, room=ROOM)
    return float(((logits > 0) == labels).float().mean())


def masked_words(texts: Packed, continues: Tensor, share: float, seed: int) -> Packed:
    """The texts with a share of their words masked."""
    generator = torch.Generator().manual_seed(seed)
    every = torch.full((1,), share)
    pieces = hide(texts.pieces.cpu().long()[None], continues, every, generator)[0]
    return Packed(pieces.to(texts.pieces), texts.ends)


def certainties(model: Any, tokenizer: Tokenizer) -> dict[str, float]:
    """The probability of POSITIVE of a few plain sentences."""
    logits, _ = predict_logits(model, pack(tokenizer, SENTENCES), fill=0, room=ROOM)
    found = logits.sigmoid().tolist()
    return {text: round(value, 2) for text, value in zip(SENTENCES, found, strict=True)}


def write_card(figures: dict[str, Any], path: Path) -> None:
    """The card, with the figures in their places."""
    sets = {
        f"{kind}_{name}": f"{count:,}"
        for kind, each in figures["counts"].items()
        for name, count in each.items()
    }
    missing = {
        f"{kind}_{name}": "0" for kind in figures["counts"] for name in figures["counts"]["read"]
    }
    models = {
        f"{model}_{_slot(name)}": f"{value:.2f}" if name in SENTENCES else f"{value:.3f}"
        for model, each in figures.items()
        if model != "counts"
        for name, value in each.items()
    }
    said = {f"said_{place}": text for place, text in enumerate(SENTENCES)}
    path.write_text(TEMPLATE.read_text().format_map(missing | sets | models | said))


def _slot(name: str) -> str:
    if name in SENTENCES:
        return f"p{SENTENCES.index(name)}"
    return name.replace(" ", "_").replace("0.", "")
