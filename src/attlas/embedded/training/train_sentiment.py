"""Make the embedded sentiment model: from random initialisation, taught by fine-tuned models.

Run `python -m attlas.embedded.training.train_sentiment STAGE --help`; the stages, in order, are
prepare, teacher (once for each seed), augment, label, student, evaluate and card.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
)

from attlas.embedded.training import sentiment_data as reading
from attlas.embedded.training.sentiment_augment import all_texts, gather, near_words
from attlas.embedded.training.sentiment_figures import accuracies, certainties, write_card
from attlas.embedded.training.sentiment_grammar import grammar_rows
from attlas.embedded.training.sentiment_tokenizer import (
    LONGEST,
    PAD,
    PIECES,
    SPECIAL,
    Packed,
    continuations,
    load_tokenizer,
    pack,
    train_tokenizer,
)
from attlas.embedded.training.sentiment_training import (
    Lessons,
    SentimentPace,
    Student,
    fit,
    predict_logits,
)

FOLDER = Path(__file__).parents[1] / "sentiment"
SEED = 0
NAMES: dict[str, Any] = {
    "id2label": dict(enumerate(reading.LABELS)),
    "label2id": {label: index for index, label in enumerate(reading.LABELS)},
}


def prepare(*, data: Path, out: Path, texts: int, grammar: int, pieces: int, reviews: int) -> None:
    """Read the data, drops what leaks, writes the corpus and the tokenizer."""
    out.mkdir(parents=True, exist_ok=True)
    read = list(reading.training_rows(data))
    held_out = list(reading.held_out_texts(data))
    kept, dropped = reading.without_leaks(read, held_out)
    rows = [*list(reading.first_of_each(kept))[:texts], *grammar_rows(grammar, seed=SEED)]
    figures = reading.counts(read=read, dropped=dropped, used=rows)
    print(json.dumps(figures, indent=1), flush=True)
    (out / "counts.json").write_text(json.dumps(figures, indent=1))
    (out / "never.json").write_text(json.dumps(sorted(set(map(reading.fingerprint, held_out)))))
    reading.write_rows(reading.examined(data, reviews=reviews), out / "examined.xz")
    train_tokenizer([row.text for row in rows], pieces).save(str(out / "tokenizer.json"))
    reading.write_rows(rows, out / "corpus.xz")


def teacher(
    *, corpus: Path, base: Path, out: Path, steps: int, seconds: float, seed: int, device: str
) -> None:
    """Fine-tunes a pretrained model on all labelled text."""
    torch.manual_seed(seed)
    model = AutoModelForSequenceClassification.from_pretrained(base, dtype=torch.float32, **NAMES)
    tokenizer = load_tokenizer(base)
    rows = reading.read_rows(corpus / "corpus.xz")
    texts = pack(tokenizer, [row.text for row in rows]).to(device)
    positive = torch.tensor([row.target for row in rows], device=device)
    pace = SentimentPace(steps, seconds, rate=5e-5, rows=128, room=16_384)
    pupil = Student(model.to(device), Lessons(texts, positive), None)
    taken = fit(pupil, pace, device=device, seed=seed)
    figures = accuracies(model, tokenizer, corpus, masked=False)
    print(f"teacher {seed}: {taken} steps, {figures}", flush=True)
    model.save_pretrained(out)
    (out / "figures.json").write_text(json.dumps(figures))


def augment(*, corpus: Path, base: Path, out: Path, texts: int, grammar: int, workers: int) -> None:
    """Write the texts that the student will read, as numbers for both tokenizers."""
    started = time.monotonic()
    tokenizer = load_tokenizer(base)
    whole = AutoModelForSequenceClassification.from_pretrained(base, **NAMES)
    vectors = whole.get_input_embeddings().weight.detach()
    near = near_words(tokenizer.get_vocab(), vectors)
    never = frozenset(json.loads((corpus / "never.json").read_text()))
    pools = gather(reading.read_rows(corpus / "corpus.xz"), near, never)
    read = all_texts(pools, texts, workers)
    read += [row.text for row in grammar_rows(grammar, seed=SEED + 1)]
    print(f"{len(read)} texts, {time.monotonic() - started:.0f} s", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    for name, each in (("teacher", tokenizer), ("student", load_tokenizer(corpus))):
        packed = pack(each, read)
        torch.save((packed.pieces, packed.ends), out / f"{name}.pt")
        print(f"{len(packed.pieces)} pieces, {time.monotonic() - started:.0f} s", flush=True)


def label(*, texts: Path, teachers: list[Path], device: str) -> None:
    """Write what the teachers say of each text, and the first one's inner vectors."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    packed = Packed(*torch.load(texts / "teacher.pt", weights_only=True)).to(device)
    logits, kept = [], []
    for folder in teachers:
        model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype).eval()
        predicted, vectors = predict_logits(model.to(device), packed, fill=0, room=131_072)
        logits.append(predicted)
        kept.append(vectors)
    positive = torch.stack(logits).mean(0).sigmoid()
    print(f"{len(positive)} texts, {(positive > 0.5).float().mean():.3f} positive", flush=True)
    torch.save((positive.cpu(), kept[0].cpu()), texts / "labels.pt")


def student(
    *, corpus: Path, texts: Path, out: Path, mask: bool, steps: int, seconds: float, device: str
) -> None:
    """Train a small model on the teachers' labels; without `mask` it never sees a masked word."""
    torch.manual_seed(SEED)
    tokenizer = load_tokenizer(corpus)
    packed = Packed(*torch.load(texts / "student.pt", weights_only=True)).to(device)
    positive, vectors = (
        part.to(device) for part in torch.load(texts / "labels.pt", weights_only=True)
    )
    model = untrained(tokenizer.get_vocab_size()).to(device)
    continues = continuations(tokenizer).to(device) if mask else None
    pace = SentimentPace(steps, seconds, rate=1e-3, rows=1024, room=32_768)
    pupil = Student(model, Lessons(packed, positive, vectors), continues)
    taken = fit(pupil, pace, device=device, seed=SEED)
    save(model.cpu(), tokenizer, out)
    print(f"{out.name}: {taken} steps", flush=True)


def evaluate(
    *, corpus: Path, students: list[Path], teachers: list[Path], out: Path, device: str
) -> None:
    """Measure the saved students and writes the figures that the card needs."""
    figures = {"counts": json.loads((corpus / "counts.json").read_text())}
    tokenizer = load_tokenizer(corpus)
    for folder in students:
        model = BertForSequenceClassification.from_pretrained(folder, dtype=torch.float32).eval()
        measured = accuracies(model.to(device), tokenizer, corpus, masked=True)
        figures[folder.name] = measured | certainties(model.cpu(), tokenizer)
    for folder in teachers:
        figures[folder.name] = json.loads((folder / "figures.json").read_text())
    print(json.dumps(figures, indent=1), flush=True)
    out.write_text(json.dumps(figures, indent=1))


def card(*, figures: Path, out: Path) -> None:
    """Fill the card from the figures."""
    write_card(json.loads(figures.read_text()), out)


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
    """Write half-precision weights that load, and compute, in single precision."""
    model.half().save_pretrained(folder)
    model.config.dtype = "float32"
    model.config.save_pretrained(folder)
    # safetensors writes for the owner's eyes alone; an installed model is for every user.
    (folder / "model.safetensors").chmod(0o644)
    tokenizer.no_truncation()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=LONGEST, **SPECIAL
    ).save_pretrained(folder)


STAGES: dict[Callable[..., None], dict[str, Any]] = {
    prepare: {
        "data": Path,
        "out": Path,
        "texts": 10**7,
        "grammar": 40_000,
        "pieces": PIECES,
        "reviews": 1000,
    },
    teacher: {
        "corpus": Path,
        "base": Path,
        "out": Path,
        "steps": 2000,
        "seconds": inf,
        "seed": SEED,
        "device": "cpu",
    },
    augment: {
        "corpus": Path,
        "base": Path,
        "out": Path,
        "texts": 2_400_000,
        "grammar": 200_000,
        "workers": 1,
    },
    label: {"texts": Path, "teachers": list, "device": "cpu"},
    student: {
        "corpus": Path,
        "texts": Path,
        "out": Path,
        "mask": bool,
        "steps": 14_000,
        "seconds": inf,
        "device": "cpu",
    },
    evaluate: {"corpus": Path, "students": list, "teachers": list, "out": Path, "device": "cpu"},
    card: {"figures": Path, "out": FOLDER / "CARD.md"},
}


def parser() -> argparse.ArgumentParser:
    """The command line: a stage and its options; a type stands for an option without a default."""
    result = argparse.ArgumentParser(description=__doc__)
    stages = result.add_subparsers(required=True)
    for stage, options in STAGES.items():
        each = stages.add_parser(stage.__name__, help=stage.__doc__)
        each.set_defaults(stage=stage)
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            if value is bool:
                each.add_argument(flag, action=argparse.BooleanOptionalAction, default=True)
            elif value is list:
                each.add_argument(flag, type=Path, nargs="+", default=[])
            elif value is Path:
                each.add_argument(flag, type=Path, required=True)
            else:
                each.add_argument(flag, type=type(value), default=value)
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one stage."""
    options = vars(parser().parse_args(arguments))
    options.pop("stage")(**options)


if __name__ == "__main__":
    # The same seed gives the same weights on the same machine.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    # None is read; filling it costs time.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    main()
