"""Make the embedded dates models: dates as people write them, rewritten as 1987-03-03.

Run `python -m attlas.embedded.training.train_dates`; the folders `dates` and `dates_plain` are
overwritten. They differ in the encoder alone: that of `dates_plain` has no layers, so that what
the decoder reads at a place is the character of that place and nothing else.
"""

import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from random import Random

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from torch import Tensor, nn
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

from attlas.data.example import Example
from attlas.data.generated.dates import (
    generate_for_training,
    is_held_out,
    other_digits,
    with_digit,
)
from attlas.embedded.checks.verify_dates import MINIMUM, verify
from attlas.embedded.checks.verify_recall import report
from attlas.embedded.training.train_recall import END, PAD, SPECIAL, START, fit, save
from attlas.models.load import load

FOLDER = Path(__file__).parents[1]
ENCODER_LAYERS = {"dates": 2, "dates_plain": 0}
CHARACTERS = "0123456789 -./,ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LONGEST = 64
ANSWER = 11  # ten characters and the end
STEPS = 2000
PEAK_RATE = 2e-3
BATCH = 64
EXAMPLES = 60_000
EXCHANGED_SHARE = 0.25
HELD_OUT = 1000


def build_tokenizer() -> PreTrainedTokenizerFast:
    """One token for each character, between a start and an end."""
    pieces = [*SPECIAL.values(), *CHARACTERS]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=SPECIAL["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B </s>",
        special_tokens=[("<s>", START), ("</s>", END)],
    )
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=LONGEST,
        clean_up_tokenization_spaces=False,
        **SPECIAL,
    )


def untrained(pieces: int, encoder_layers: int) -> BartForConditionalGeneration:
    """The stock architecture at random initialisation."""
    config = BartConfig(
        vocab_size=pieces,
        d_model=64,
        encoder_layers=encoder_layers,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_position_embeddings=LONGEST,
        dropout=0.0,
        init_std=0.1,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
    )
    model = BartForConditionalGeneration(config)
    model.generation_config.max_new_tokens = ANSWER
    return model


def write_examples(count: int, seed: int) -> list[Example]:
    """Training dates, some with a digit exchanged and all else left as it was.

    So a changed digit is no surprise to the model, though the weekday or the "rd" of "3rd" no
    longer fits.
    """
    random = Random(f"exchange {seed}")
    written = generate_for_training(count, seed)
    return [
        exchanged(each, random) if random.random() < EXCHANGED_SHARE else each for each in written
    ]


def exchanged(example: Example, random: Random) -> Example:
    """The example with one copied digit exchanged, unless that makes a date that is held out."""
    place = random.choice(example.fields["copied"])
    digits = other_digits(example, place)
    if not digits:
        return example
    changed = with_digit(example, place, random.choice(digits))
    return example if is_held_out(str(changed.label)) else changed


def encode(
    tokenizer: PreTrainedTokenizerFast, examples: Sequence[Example]
) -> tuple[Tensor, Tensor]:
    """The texts, padded, and the answers, each with its end."""
    texts = [str(example.text) for example in examples]
    answers = [str(example.label) for example in examples]
    sources = tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]
    targets = tokenizer(answers, return_tensors="pt")["input_ids"][:, 1:]
    return sources, targets


def loss_of(model: nn.Module, sources: Tensor, targets: Tensor) -> Tensor:
    """The loss on every character of the answers, each behind the right ones before it."""
    longest = int((sources != PAD).sum(1).max())
    sources = sources[:, :longest]
    loss: Tensor = model(
        input_ids=sources, attention_mask=(sources != PAD).long(), labels=targets
    ).loss
    return loss


def make(
    folder: Path,
    *,
    name: str = "dates",
    device: str = "cpu",
    steps: int = STEPS,
    examples: int = EXAMPLES,
    held_out: int = HELD_OUT,
    seed: int = 0,
) -> dict[str, float]:
    """Generate data, train, save and measure one of the two models; return its figures."""
    started = time.process_time()
    torch.manual_seed(seed)
    tokenizer = build_tokenizer()
    sources, targets = encode(tokenizer, write_examples(examples, seed))
    model = untrained(len(tokenizer), ENCODER_LAYERS[name]).to(device)

    def loss_at(step: int) -> Tensor:
        chosen = torch.randint(len(sources), (BATCH,))
        return loss_of(model, sources[chosen].to(device), targets[chosen].to(device))

    fit(model, loss_at, steps=steps, rate=PEAK_RATE)
    save(model, tokenizer, folder)
    print(f"{name}: {time.process_time() - started:.0f} seconds of processor time to train")
    figures = verify(load(folder, device=device), count=held_out)
    report(figures, MINIMUM)
    return figures


def main() -> None:
    """Make what is asked for on the command line."""
    parser = ArgumentParser()
    parser.add_argument("--name", choices=ENCODER_LAYERS, help="one of the two; else both")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where their folders go")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for name in [asked.name] if asked.name else ENCODER_LAYERS:
        make(asked.out / name, name=name, device=asked.device, steps=asked.steps, seed=asked.seed)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
