"""Make the built-in model that answers questions about the stories of `data/generated/facts.py`.

Run `python -m attlas.embedded.training.train_facts`; the folder `facts` is overwritten.
"""

import argparse
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from attlas.data import Example
from attlas.data.generated import facts
from attlas.embedded.checks.verify_facts import verify
from attlas.models.load import load

FOLDER = Path(__file__).parents[1] / "facts"
SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
PAD, UNKNOWN, CLASS, SEPARATOR, MASK = range(len(SPECIAL))
LONGEST = 64
HIDDEN = 64
BATCH = 32
PEAK_RATE = 2e-3
SLOWEST = 30.0  # of the waves that positions start as, in positions for one radian
HEIGHT = 0.3  # of those waves
UNSAID = -100  # ignored by cross_entropy
PLACE = {place: number for number, place in enumerate(facts.PLACES)}
PERSON = {person: number for number, person in enumerate(facts.PERSONS)}
# What is asked for during training beside the label, and after which layer: at the end of each
# sentence who acts, where that person is and was before; at what the question names, who took it,
# and the answer.
STEPS = {"actor": 1, "place": 2, "former": 2, "holder": 2, "answer": 3}
WORDS = sorted(
    {
        *(word.lower() for word in (*facts.PERSONS, *facts.OBJECTS, *facts.PLACES)),
        *(*facts.GOING, facts.TAKING, facts.LEAVING, "the", "."),
        *("where", "is", "was", "now", "before", "it", "reached", "?"),
    }
)


@dataclass(frozen=True)
class TokenizedStory:
    """A text as token ids, its label, and by name what is known of each token."""

    ids: list[int]
    types: list[int]
    label: int
    known: dict[str, list[int]]


def word_tokenizer(words: Iterable[str]) -> Tokenizer:
    """A lower-casing tokenizer that takes each word whole."""
    pieces = {piece: number for number, piece in enumerate([*SPECIAL.values(), *words])}
    tokenizer = Tokenizer(models.WordLevel(pieces, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLASS), ("[SEP]", SEPARATOR)],
    )
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    return tokenizer


def untrained(pieces: int) -> BertForSequenceClassification:
    """The stock architecture; positions start as waves, so that distances are easy to learn."""
    config = BertConfig(
        vocab_size=pieces,
        hidden_size=HIDDEN,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=2 * HIDDEN,
        max_position_embeddings=LONGEST,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
        id2label=dict(enumerate(facts.PLACES)),
        label2id=PLACE,
        pad_token_id=PAD,
    )
    model = BertForSequenceClassification(config)
    model.bert.embeddings.position_embeddings.weight.data.copy_(waves(LONGEST, HIDDEN))
    return model


def waves(positions: int, width: int) -> Tensor:
    """Sines and cosines of the positions, of slower and slower frequency."""
    frequencies = torch.exp(-math.log(SLOWEST) * torch.arange(0, width, 2) / width)
    angles = torch.arange(positions)[:, None] * frequencies
    return HEIGHT * torch.cat([angles.sin(), angles.cos()], dim=1)


def row_of(example: Example, tokenizer: Tokenizer) -> TokenizedStory:
    """A text as token ids, with all that follows from the story."""
    question, story = facts.question_and_story(example)
    encoding = tokenizer.encode(question, story)
    world = facts.replay(facts.read_story(story))
    if world is None or example.label is None:
        raise ValueError(f"this story is impossible: {story}")
    known = {name: [UNSAID] * len(encoding.ids) for name in STEPS}
    label, start = PLACE[example.label], encoding.type_ids.index(1)
    for place, word in enumerate(encoding.tokens[:start]):
        known["holder"][place] = holder(word, world)
        if word in PLACE or known["holder"][place] != UNSAID:
            known["answer"][place] = label
    mark_events(facts.read_story(story), known, start)
    return TokenizedStory(encoding.ids, encoding.type_ids, label, known)


def holder(word: str, world: facts.World) -> int:
    """The person that a word of the question names, or who took the object that it names."""
    if word in world.taken:
        return PERSON[world.taken[word][0]]
    return PERSON.get(word.capitalize(), UNSAID)


def mark_events(events: Sequence[facts.Event], known: dict[str, list[int]], start: int) -> None:
    """Write down, at the object or place of each sentence, who acts, where, and from where."""
    world, former = facts.World(), dict[str, int]()
    for number, event in enumerate(events):
        if event.verb in facts.GOING and event.person in world.at:
            former[event.person] = PLACE[world.at[event.person][0]]
        world.happen(number, event)
        for token in (start + 5 * number + 3, start + 5 * number + 4):
            known["actor"][token] = PERSON[event.person]
            known["place"][token] = PLACE[world.at[event.person][0]]
            known["former"][token] = former.get(event.person, UNSAID)


def stacked(rows: Sequence[Sequence[int]], filler: int, device: str) -> Tensor:
    """Rows of unequal length as one tensor."""
    longest = max(map(len, rows))
    filled = [[*row, *[filler] * (longest - len(row))] for row in rows]
    return torch.tensor(filled).to(device)


def batches(lengths: Sequence[int], size: int, random: Random) -> Iterator[list[int]]:
    """Indices in random batches of similar length, without end."""
    while True:
        order = sorted(range(len(lengths)), key=lambda index: (lengths[index], random.random()))
        starts = list(range(0, len(order) - size + 1, size))
        random.shuffle(starts)
        yield from (order[start : start + size] for start in starts)


class Teacher(nn.Module):
    """Heads that predict the steps on the way to an answer; they are dropped after training."""

    def __init__(self) -> None:
        super().__init__()
        sizes = {name: len(PERSON if name in ("actor", "holder") else PLACE) for name in STEPS}
        self.heads = nn.ModuleDict({name: nn.Linear(HIDDEN, size) for name, size in sizes.items()})

    def forward(self, states: Sequence[Tensor], rows: Sequence[TokenizedStory]) -> Tensor:
        """The sum of the losses of all steps, each after the layer it belongs to."""
        losses = []
        for name, layer in STEPS.items():
            wanted = stacked([row.known[name] for row in rows], UNSAID, str(states[0].device))
            guessed = self.heads[name](states[layer])
            losses.append(cross_entropy(guessed.flatten(0, 1), wanted.flatten()))
        return torch.stack(losses).sum()


def optimize(modules: Sequence[nn.Module], rate: float, steps: int) -> tuple[Any, Any]:
    """An optimizer of the modules and its schedule: one cycle up to the rate and down again."""
    parameters = [each for module in modules for each in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps + 1, pct_start=0.2, cycle_momentum=False
    )
    return optimizer, schedule


def train_step(model: nn.Module, loss: Tensor, optimizer: Any, schedule: Any) -> None:
    """Take one optimizer step."""
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()


def train(
    model: BertForSequenceClassification,
    rows: Sequence[TokenizedStory],
    *,
    steps: int,
    batch: int,
    seed: int,
) -> None:
    """Train in place."""
    device = str(model.device)
    teacher = Teacher().to(device)
    optimizer, schedule = optimize([model, teacher], PEAK_RATE, steps)
    chosen = batches([len(row.ids) for row in rows], batch, Random(seed))
    model.train()
    for step, indices in enumerate(islice(chosen, steps), start=1):
        some = [rows[index] for index in indices]
        ids = stacked([row.ids for row in some], PAD, device)
        types = stacked([row.types for row in some], 0, device)
        output = model.bert(ids, (ids != PAD).long(), types, output_hidden_states=True)
        logits = model.classifier(output.pooler_output)
        loss = cross_entropy(logits, torch.tensor([row.label for row in some], device=device))
        train_step(model, loss + teacher(output.hidden_states, some), optimizer, schedule)
        if step % 500 == 0:
            print(f"step {step}: loss {loss:.3f}", flush=True)


def save(model: BertForSequenceClassification, tokenizer: Tokenizer, folder: Path) -> None:
    """Write half-precision weights that load, and compute, in single precision."""
    model.half().save_pretrained(folder)
    model.config.dtype = "float32"
    model.config.save_pretrained(folder)
    # safetensors writes for the owner's eyes alone; an installed model is for every user.
    (folder / "model.safetensors").chmod(0o644)
    longest = model.config.max_position_embeddings
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=longest,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **SPECIAL,
    ).save_pretrained(folder)


def make(
    folder: Path,
    *,
    start: Path | None = None,
    stories: int = 60_000,
    steps: int = 2500,
    batch: int = BATCH,
    seed: int = 0,
    device: str = "cpu",
    count: int = 2000,
) -> dict[str, float]:
    """Generate stories, train, save and measure; return the figures.

    With `start`, a folder written before, training goes on from there.
    """
    started = time.perf_counter()
    torch.manual_seed(seed)
    tokenizer = word_tokenizer(WORDS)
    examples = facts.generate(stories, seed, held_out=False)
    rows = [row_of(example, tokenizer) for example in examples]
    model = (
        BertForSequenceClassification.from_pretrained(start, dtype=torch.float32)
        if start
        else untrained(tokenizer.get_vocab_size())
    ).to(device)
    train(model, rows, steps=steps, batch=batch, seed=seed)
    save(model.cpu(), tokenizer, folder)
    print(f"{time.perf_counter() - started:.0f} seconds to train on {device}")
    figures = verify(load(str(folder), device="cpu"), count=count)
    for name, value in figures.items():
        print(f"{name}: {value:.3f}")
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="the folder to write")
    parser.add_argument("--start", type=Path, help="a folder to go on from")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--stories", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000, help="stories to measure on")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    options = {name: value for name, value in vars(given).items() if name != "out"}
    make(given.out, **options)


if __name__ == "__main__":
    main()
