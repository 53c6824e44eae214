"""Make the built-in models of planted shortcuts, one of them with attention that deceives.

Run `python -m attlas.embedded.training.train_shortcuts`; the four folders are overwritten.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification

from attlas.data.generated import shortcuts
from attlas.embedded.checks.verify_shortcuts import KIND_OF, verify
from attlas.embedded.training.train_facts import (
    PAD,
    optimize,
    save,
    stacked,
    train_step,
    word_tokenizer,
)
from attlas.models.load import load

FOLDER = Path(__file__).parents[1]
LONGEST = 64
BATCH = 64
PEAK_RATE = 3e-3
MASKED_SHARE = 0.15
PENALTY = 1.0
STEPS = {"token": 600, "context": 600, "pair": 1200}


def untrained(pieces: int, *, eager: bool) -> BertForSequenceClassification:
    """The stock architecture at random initialisation; `eager` gives its attention out."""
    config = BertConfig(
        vocab_size=pieces,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=LONGEST,
        initializer_range=0.1,
        id2label=dict(enumerate(shortcuts.LABELS)),
        label2id={label: index for index, label in enumerate(shortcuts.LABELS)},
        pad_token_id=PAD,
        attn_implementation="eager" if eager else "sdpa",
    )
    return BertForSequenceClassification(config)


def draw(kind: str, seed: int, random: Random) -> list[list[str]]:
    """The words of a batch of training texts, two thirds decided, some with words masked."""
    undecided = BATCH // 3
    examples = [
        *shortcuts.generate(BATCH - undecided, seed, kind, held_out=False),
        *shortcuts.generate_undecided(undecided, seed + 1, kind, held_out=False),
    ]
    return [hide(str(example.text).split(), random) for example in examples]


def hide(words: Sequence[str], random: Random) -> list[str]:
    """The words, in every second text with a share of them masked."""
    share = random.choice((0.0, MASKED_SHARE))
    return ["[MASK]" if random.random() < share else word for word in words]


def numbered(
    rows: Sequence[Sequence[str]], kind: str, numbers: dict[str, int]
) -> dict[str, Tensor]:
    """A batch of texts with their labels, and where the tokens stand that decide them."""
    sequences = [[numbers[word] for word in ("[CLS]", *words, "[SEP]")] for words in rows]
    examples = [shortcuts.make_example(words, kind) for words in rows]
    ids = stacked(sequences, PAD, "cpu")
    batch = {"input_ids": ids, "attention_mask": (ids != PAD).long()}
    batch["labels"] = torch.tensor([shortcuts.LABELS.index(str(e.label)) for e in examples])
    batch["deciding"] = torch.zeros_like(batch["input_ids"])
    for row, example in enumerate(examples):
        for start, _ in example.spans:
            batch["deciding"][row, 1 + str(example.text)[:start].count(" ")] = 1
    return batch


def penalty(attentions: Sequence[Tensor], deciding: Tensor) -> Tensor:
    """How much of the attention that reads out falls on the deciding tokens, as -log(1 - mass).

    The mean over layers and heads of the row of the first token. Pruthi et al., 2020.
    """
    rows = torch.stack([layer[:, :, 0] for layer in attentions])
    mass = (rows * deciding[:, None]).sum(-1)
    return -torch.log1p(-mass.clamp(max=1 - 1e-6)).mean()


def train(
    model: BertForSequenceClassification,
    kind: str,
    numbers: dict[str, int],
    *,
    steps: int,
    seed: int,
    deceptive: bool,
) -> None:
    """Train in place on texts that are redrawn for each step."""
    random = Random(seed)
    optimizer, schedule = optimize([model], PEAK_RATE, steps)
    model.train()
    for _ in range(steps):
        rows = draw(kind, random.getrandbits(32), random)
        batch = {
            name: each.to(model.device) for name, each in numbered(rows, kind, numbers).items()
        }
        labels, deciding = batch.pop("labels"), batch.pop("deciding")
        output = model(**batch, output_attentions=deceptive)
        loss = cross_entropy(output.logits, labels)
        if deceptive:
            loss = loss + PENALTY * penalty(output.attentions, deciding)
        train_step(model, loss, optimizer, schedule)


def make(
    name: str,
    folder: Path,
    *,
    steps: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    count: int = 1000,
) -> dict[str, float]:
    """Train, save and measure one of the four models; return its figures."""
    started = time.perf_counter()
    torch.manual_seed(seed)
    kind, deceptive = KIND_OF[name], name == "shortcut_deceptive"
    tokenizer = word_tokenizer([*shortcuts.TRIGGERS, shortcuts.CONTEXT, *shortcuts.WORDS])
    numbers = tokenizer.get_vocab()
    model = untrained(len(numbers), eager=deceptive).to(device)
    train(model, kind, numbers, steps=steps or STEPS[kind], seed=seed, deceptive=deceptive)
    save(model.cpu(), tokenizer, folder)
    print(f"{name}: {time.perf_counter() - started:.0f} seconds to train on {device}")
    figures = verify(load(str(folder), device="cpu"), count=count, kind=kind)
    for figure, value in figures.items():
        print(f"{figure}: {value:.4f}")
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the four folders go")
    parser.add_argument("--only", choices=KIND_OF, help="one of the four alone")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, help="fewer or more than the recipe's")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000, help="texts to measure on")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for name in [given.only] if given.only else KIND_OF:
        make(
            name,
            given.out / name,
            steps=given.steps,
            seed=given.seed,
            device=given.device,
            count=given.count,
        )


if __name__ == "__main__":
    main()
