"""What long inputs cost: a plain forward, raw attention, rollout, and `output_attentions=True`.

    python benchmarks/long.py [--device cuda] [--tokens 256 512 1024 2048]

A decoder of 30 layers in the shape of SmolLM2-135M (a small vocabulary, random weights), one text.
Both methods are whole calls of `attlas.explain`. Each measurement is a second call in a new
process. Peak memory is what that call added: in the process on a CPU (Linux), in the allocator on a
GPU. The last column is the share of what `output_attentions=True` takes at the same length.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

import attlas

WAYS = ("output_attentions", "attention_rollout", "raw_attention", "plain sdpa forward")
WORDS = 1000
SHARE = 0.2  # rollout may take at most this share of the memory of output_attentions


def build(implementation: str, device: str) -> LlamaForCausalLM:
    """The model, with this attention implementation."""
    logging.set_verbosity_error()
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=WORDS,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        attn_implementation=implementation,
    )
    return LlamaForCausalLM(config).eval().to(device)


def tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer with a word for each number; `0` is the unknown word."""
    words = Tokenizer(WordLevel({str(i): i for i in range(WORDS)}, unk_token="0"))
    words.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="0", model_max_length=8192)


def way(name: str, device: str) -> Callable[[list[int]], Any]:
    """The work to measure, as a function of token ids."""
    model = build("eager" if name == "output_attentions" else "sdpa", device)
    if name in attlas.list_methods():
        subject = attlas.Subject(model, tokenizer())
        return lambda ids: attlas.explain(subject, ids, name)
    extra = {"output_attentions": True} if name == "output_attentions" else {}

    @torch.no_grad()
    def forward(ids: list[int]) -> Any:
        return model(torch.tensor([ids], device=device), use_cache=False, logits_to_keep=1, **extra)

    return forward


def measure(name: str, length: int, device: str) -> tuple[float, float]:
    """Seconds and megabytes of one call, after everything is loaded."""
    ids = torch.randint(WORDS, (length,), generator=torch.Generator().manual_seed(0)).tolist()
    run = way(name, device)
    run(ids if device == "cuda" else ids[:16])
    before = _start_peak(device)
    start = time.perf_counter()
    kept = run(ids)
    peak = _peak_bytes(device)  # waits for the device
    seconds = time.perf_counter() - start
    del kept
    return seconds, (peak - before) / 2**20


def _start_peak(device: str) -> int:
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    Path("/proc/self/clear_refs").write_text("5")
    return _peak_bytes(device)


def _peak_bytes(device: str) -> int:
    if device == "cuda":
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 2**10


def apart(name: str, length: int, device: str) -> tuple[float, float]:
    """The same, in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(measure, (name, length, device))


def main() -> None:
    """Print a line for each length and way, and whether rollout stays below its share."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tokens", type=int, nargs="+", default=[256, 512, 1024, 2048])
    given = parser.parse_args()
    print(f"{'tokens':>6}  {'way':<18} {'seconds':>8} {'peak MB':>8} {'share':>6}")
    for length in given.tokens:
        found = {name: apart(name, length, given.device) for name in WAYS}
        whole = found["output_attentions"][1]
        for name, (seconds, peak) in found.items():
            share = peak / whole
            print(f"{length:>6}  {name:<18} {seconds:>8.2f} {peak:>8.1f} {share:>6.3f}", flush=True)
    share = found["attention_rollout"][1] / whole
    verdict = "kept" if share <= SHARE else "NOT kept"
    print(f"rollout at {length} tokens: 1/{1 / share:.1f} of output_attentions (1/5 is {verdict})")


if __name__ == "__main__":
    main()
