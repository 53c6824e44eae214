"""Makes the embedded sentiment model from nothing but the words in `sentiment_words`.

Run `python -m attlas.models.embedded.train_sentiment`; the folder `sentiment` is written anew.
"""

import re
import string
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from zlib import crc32

import torch
from tokenizers import Encoding, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
)

from attlas.models.embedded import sentiment_words as words

FOLDER = Path(__file__).parent / "sentiment"
LABELS = ("NEGATIVE", "POSITIVE")
LONGEST = 128
PIECES = 2800
MASKED_SHARE = 0.15
PEAK_RATE = 2e-3
BATCH = 64
SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
PAD, UNKNOWN, CLASS, SEPARATOR, MASK = range(len(SPECIAL))


@dataclass(frozen=True)
class Review:
    """A generated text, its sentiment, and how sure the label is."""

    text: str
    positive: bool
    certainty: float


@dataclass(frozen=True)
class Phrasing:
    """Fills the slots of a sentence shape, each time it is asked, for one topic and sentiment."""

    random: Random
    topic: str
    noun: str
    positive: bool
    unseen: bool

    def __getitem__(self, slot: str) -> str:
        if slot.startswith("other_"):
            return replace(self, positive=not self.positive)[slot.removeprefix("other_")]
        if slot == "noun":
            return self.noun
        if slot == "name":
            return invented_name(self.random)
        choices = pool(slot, self.topic, self.positive, self.unseen)
        if slot == "adjective":
            choices = fitting(choices, self.noun, self.unseen)
        return self.random.choice(choices).format_map(self)


@cache
def pool(slot: str, topic: str, positive: bool, unseen: bool) -> tuple[str, ...]:
    """Everything that may fill a slot."""
    general, by_topic = (
        (words.PRAISE, words.PRAISE_BY_TOPIC) if positive else (words.BLAME, words.BLAME_BY_TOPIC)
    )
    frames = words.FRAMES | words.UNSEEN_FRAMES if unseen else words.FRAMES
    sources = (general, by_topic[topic], words.TOPICS[topic], words.NEUTRAL, frames)
    return sum((source.get(slot, ()) for source in sources), ())


@cache
def fitting(adjectives: tuple[str, ...], noun: str, unseen: bool) -> tuple[str, ...]:
    """The adjectives that may stand in one review with a noun: one pair in eight is held out."""
    return tuple(
        each for each in adjectives if (crc32(f"{each} {noun}".encode()) % 8 == 0) == unseen
    )


def invented_name(random: Random) -> str:
    """A name of no meaning, so that unknown words are read as neutral."""
    syllables = random.randint(1, 3)
    return "".join(
        random.choice(string.ascii_lowercase) + random.choice("aeiouy") + random.choice("nrlst d")
        for _ in range(syllables)
    ).replace(" ", "")


def write_review(random: Random, *, unseen: bool = False) -> Review:
    """One review; `unseen` takes the sentence shapes and word pairs kept out of training."""
    topic = random.choice(tuple(words.TOPICS))
    noun = random.choice(words.TOPICS[topic]["noun"])
    positive = random.random() < 0.5
    certainty, shape = random.choice(words.REVIEWS)
    text = shape.format_map(Phrasing(random, topic, noun, positive, unseen))
    return Review(tidied(text, contracted=random.random() < 0.4), positive, certainty)


def tidied(text: str, *, contracted: bool) -> str:
    """The text with its spaces, articles and stops in order; `contracted` writes "wasn't"."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\ba (?=[aeiouAI])", "an ", text)
    text = re.sub(r",(?=[,.!?])", "", text)
    text = re.sub(r"\?\.", "?", text)
    if contracted:
        text = text.replace("cannot", "can't").replace("will not", "won't")
        text = re.sub(r"\b(is|was|did|do|does|could|would) not\b", r"\1n't", text)
    return text


def learn_pieces(texts: Sequence[str]) -> dict[str, int]:
    """The pieces that words are cut into, with their numbers."""
    letters = string.ascii_lowercase + string.digits
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # Named beforehand, the continuations are all there, and ties fall alike in every run.
    continuations = [f"##{letter}" for letter in letters]
    trainer = WordPieceTrainer(
        vocab_size=PIECES - len(SPECIAL),
        special_tokens=continuations,
        initial_alphabet=list(letters + string.punctuation + "‘’“”–—…£€"),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*texts, *words.NEUTRAL["common"] * 3], trainer)
    pieces = [*SPECIAL.values(), *sorted(tokenizer.get_vocab())]
    return {piece: number for number, piece in enumerate(pieces)}


def train_tokenizer(texts: Sequence[str]) -> Tokenizer:
    """A lower-casing WordPiece tokenizer that spells out what it does not know."""
    pieces = learn_pieces(texts)
    model = models.WordPiece(pieces, unk_token="[UNK]", max_input_chars_per_word=1000)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLASS), ("[SEP]", SEPARATOR)],
    )
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    return tokenizer


def untrained(pieces: int) -> BertForSequenceClassification:
    """The stock architecture at random initialisation."""
    config = BertConfig(
        vocab_size=pieces,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=LONGEST,
        id2label=dict(enumerate(LABELS)),
        label2id={label: index for index, label in enumerate(LABELS)},
        pad_token_id=PAD,
    )
    return BertForSequenceClassification(config)


def hide(encoding: Encoding, random: Random) -> list[int]:
    """The ids of a text with a share of its words masked, each word as a whole."""
    spans = {word for word in encoding.word_ids if word is not None}
    hidden = {word for word in sorted(spans) if random.random() < MASKED_SHARE}
    pairs = zip(encoding.ids, encoding.word_ids, strict=True)
    return [MASK if word in hidden else piece for piece, word in pairs]


def padded(rows: Sequence[list[int]]) -> dict[str, Tensor]:
    """Rows of ids as one batch."""
    longest = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


def batches(lengths: Sequence[int], size: int, random: Random) -> Iterator[list[int]]:
    """Indices in random batches of similar length, without end."""
    while True:
        order = sorted(range(len(lengths)), key=lambda index: (lengths[index], random.random()))
        starts = list(range(0, len(order) - size + 1, size))
        random.shuffle(starts)
        yield from (order[start : start + size] for start in starts)


def train(
    model: BertForSequenceClassification,
    encodings: Sequence[Encoding],
    targets: Tensor,
    *,
    steps: int,
    random: Random,
) -> None:
    """Trains in place; every second batch has words masked, so that masked text is known too."""
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, PEAK_RATE, total_steps=steps + 1, pct_start=0.2, cycle_momentum=False
    )
    chosen = batches([len(encoding.ids) for encoding in encodings], BATCH, random)
    model.train()
    for step, batch in zip(range(steps), chosen, strict=False):
        rows = [encodings[index] for index in batch]
        ids = [hide(row, random) if step % 2 else list(row.ids) for row in rows]
        loss = cross_entropy(model(**padded(ids)).logits, targets[batch])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def softened(reviews: Sequence[Review]) -> Tensor:
    """The probability each label should have, for each review."""
    positive = torch.tensor([r.certainty if r.positive else 1 - r.certainty for r in reviews])
    return torch.stack([1 - positive, positive], dim=1)


def save(model: BertForSequenceClassification, tokenizer: Tokenizer, folder: Path) -> None:
    """Writes half-precision weights that load, and compute, in single precision."""
    model.half().save_pretrained(folder)
    model.config.dtype = "float32"
    model.config.save_pretrained(folder)
    # safetensors writes for the owner's eyes alone; an installed model is for every user.
    (folder / "model.safetensors").chmod(0o644)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=LONGEST, **SPECIAL
    ).save_pretrained(folder)


@torch.no_grad()
def accuracy(
    folder: Path, texts: Sequence[str], labels: Sequence[int], *, hiding: Random | None = None
) -> float:
    """The share of texts that the saved model labels rightly, with words masked if `hiding`."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    encodings = AutoTokenizer.from_pretrained(folder).backend_tokenizer.encode_batch(list(texts))
    right = 0
    for encoding, label in zip(encodings, labels, strict=True):
        ids = hide(encoding, hiding) if hiding else list(encoding.ids)
        right += int(model(**padded([ids])).logits.argmax()) == label
    return right / len(texts)


def measure(folder: Path, trained_on: set[str], count: int, seed: int) -> dict[str, float]:
    """The accuracies of the saved model on what it was not trained on."""
    random = Random(seed + 1)
    written = [write_review(random, unseen=True) for _ in range(count)]
    reviews = [
        review
        for review in written
        if review.text not in trained_on and review.certainty > words.UNSAID
    ]
    texts, labels = [r.text for r in reviews], [int(r.positive) for r in reviews]
    hand_texts, hand_labels = zip(*words.BY_HAND, strict=True)
    return {
        "held out, unseen sentence shapes and word pairs": accuracy(folder, texts, labels),
        "the same with 15% of words masked": accuracy(folder, texts, labels, hiding=random),
        "thirty sentences written by hand": accuracy(folder, hand_texts, hand_labels),
    }


def make(
    folder: Path, *, reviews: int = 80_000, steps: int = 3400, held_out: int = 2000, seed: int = 0
) -> dict[str, float]:
    """Generates, trains, saves and measures; returns the accuracies."""
    started = time.process_time()
    random = Random(seed)
    torch.manual_seed(seed)
    written = [write_review(random) for _ in range(reviews)]
    tokenizer = train_tokenizer([review.text for review in written])
    encodings = tokenizer.encode_batch([review.text for review in written])
    model = untrained(tokenizer.get_vocab_size())
    train(model, encodings, softened(written), steps=steps, random=random)
    save(model, tokenizer, folder)
    seconds = time.process_time() - started
    figures = measure(folder, {review.text for review in written}, held_out, seed)
    for name, value in figures.items():
        print(f"{name}: {value:.3f}")
    print(f"{seconds:.0f} seconds of processor time to train")
    return figures


if __name__ == "__main__":
    torch.set_num_threads(1)
    make(FOLDER)
