"""Make the embedded recall model: a tiny language model that looks up the value of a key.

Run `python -m attlas.embedded.training.train_recall`; the folder `recall` is overwritten.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from attlas.data.generated.recall import FEWEST, KEYS, MOST, VALUES, draw_pairs
from attlas.embedded.checks.verify_recall import MINIMUM, report, verify
from attlas.models.load import load

FOLDER = Path(__file__).parents[1] / "recall"
SPECIAL = {
    "pad_token": "<pad>",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
}
PAD, START, END, UNKNOWN = range(len(SPECIAL))
NO_VALUE = "?"  # what follows a key that was not seen
LONGEST = 64
STEPS = 1800
PEAK_RATE = 3e-3
BATCH = 64
ASKED = 6  # keys asked for in one training text
STRANGE_SHARE = 0.15  # of those, keys that were not seen
HELD_OUT = 2000


def build_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each word, with a start token before the text."""
    words = [*SPECIAL.values(), NO_VALUE, *KEYS, *VALUES]
    numbers = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", START)]
    )
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
        **SPECIAL,
    )


def untrained(words: int) -> LlamaForCausalLM:
    """The stock architecture at random initialisation."""
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=LONGEST,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        initializer_range=0.1,
    )
    return LlamaForCausalLM(config)


def write_row(random: Random, pairs: int) -> list[str]:
    """Pairs, and then keys each with its value; for a key that was not seen, a question mark."""
    drawn = draw_pairs(random, pairs)
    unseen = [(key, NO_VALUE) for key in sorted(set(KEYS) - {key for key, _ in drawn})]
    asked = [
        (unseen if random.random() < STRANGE_SHARE else drawn, random.random())
        for _ in range(ASKED)
    ]
    answers = [source[int(place * len(source))] for source, place in asked]
    return [word for pair in (*drawn, *answers) for word in pair]


def write_batch(random: Random, numbers: dict[str, int], most: int) -> Tensor:
    """Rows of ids of equal length, of few pairs up to `most`."""
    pairs = random.randint(min(most, FEWEST), most)
    rows = [write_row(random, pairs) for _ in range(BATCH)]
    return torch.tensor([[START, *(numbers[word] for word in row)] for row in rows])


def most_pairs(step: int, steps: int) -> int:
    """How many pairs a text may have by now: from two, to all of them after half the steps."""
    return min(MOST, 2 + int((MOST - 2) * 2 * step / steps))


def loss_of(model: nn.Module, ids: Tensor) -> Tensor:
    """The next-token loss on the values of the keys asked for."""
    logits = model(input_ids=ids[:, :-1]).logits[:, -2 * ASKED + 1 :: 2]
    return cross_entropy(logits.flatten(0, 1), ids[:, -2 * ASKED + 1 :: 2].flatten())


def fit(model: nn.Module, loss_at: Callable[[int], Tensor], *, steps: int, rate: float) -> None:
    """Train in place, in one cycle of the learning rate."""
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=steps + 1, pct_start=0.2, cycle_momentum=False
    )
    model.train()
    for step in range(steps):
        loss = loss_at(step)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


def save(model: Any, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write half-precision weights that load, and compute, in single precision."""
    model.half().save_pretrained(folder)
    model.config.dtype = "float32"
    model.config.save_pretrained(folder)
    # safetensors writes for the owner's eyes alone; an installed model is for every user.
    (folder / "model.safetensors").chmod(0o644)
    tokenizer.save_pretrained(folder)


def make(
    folder: Path,
    *,
    device: str = "cpu",
    steps: int = STEPS,
    held_out: int = HELD_OUT,
    seed: int = 0,
) -> dict[str, float]:
    """Generate, train, save and measure; return the figures."""
    started = time.process_time()
    random = Random(f"training {seed}")
    torch.manual_seed(seed)
    tokenizer = build_tokenizer()
    numbers = tokenizer.get_vocab()
    model = untrained(len(numbers)).to(device)

    def loss_at(step: int) -> Tensor:
        ids = write_batch(random, numbers, most_pairs(step, steps))
        return loss_of(model, ids.to(device))

    fit(model, loss_at, steps=steps, rate=PEAK_RATE)
    save(model, tokenizer, folder)
    print(f"{time.process_time() - started:.0f} seconds of processor time to train")
    figures = verify(load(folder, device=device), count=held_out)
    report(figures, MINIMUM)
    return figures


def options(folder: Path, steps: int) -> Namespace:
    """What is asked for on the command line."""
    parser = ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=folder)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    torch.set_num_threads(1)
    asked = options(FOLDER, STEPS)
    make(asked.out, device=asked.device, steps=asked.steps, seed=asked.seed)
