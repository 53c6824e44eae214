"""What reading the attention costs: a plain eager forward, the tap, and `output_attentions=True`.

    python benchmarks/tap.py [--device cuda] [--rounds 15]

BERT-base shape, random weights, one text of 128 and of 512 tokens. The three take turns in
each round; the ratio is the median over rounds of the ratio to eager in the same round. Peak memory
is what the forward added: in a new process on a CPU, in the allocator on a GPU.
"""

import argparse
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch
from timing import timed
from transformers import BertConfig, BertModel
from transformers.utils import logging

from attlas.models.tap.opening import tap

WAYS = ("eager", "tap", "output_attentions")


def build(device: str) -> dict[str, BertModel]:
    """Two models with the same weights: one for the tap, one with eager attention."""
    logging.set_verbosity_error()
    models = {}
    for implementation in ("sdpa", "eager"):
        torch.manual_seed(0)
        config = BertConfig(attn_implementation=implementation)
        models[implementation] = BertModel(config).eval().to(device)
    return models


def ways(models: dict[str, BertModel], ids: torch.Tensor) -> dict[str, Callable[[], object]]:
    def eager() -> object:
        return models["eager"](input_ids=ids).last_hidden_state

    def tapped() -> object:
        with tap(models["sdpa"]) as seen:
            models["sdpa"](input_ids=ids)
        return seen.weights

    def output_attentions() -> object:
        return models["eager"](input_ids=ids, output_attentions=True).attentions

    return {"eager": eager, "tap": tapped, "output_attentions": output_attentions}


def peak_megabytes(name: str, length: int, device: str) -> float:
    if device == "cuda":
        return _peak_on_gpu(name, length)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_in_this_process, (name, length))


def _peak_on_gpu(name: str, length: int) -> float:
    models = build("cuda")
    way = ways(models, torch.randint(1000, 20000, (1, length), device="cuda"))[name]
    with torch.no_grad():
        way()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        way()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def _peak_in_this_process(name: str, length: int) -> float:
    models = build("cpu")
    way = ways(models, torch.randint(1000, 20000, (1, length)))[name]
    with torch.no_grad():
        ways(models, torch.randint(1000, 20000, (1, 8)))[name]()  # everything is loaded by now
        Path("/proc/self/clear_refs").write_text("5")  # Linux: start the peak anew
        before = _peak_kilobytes()
        way()
    return (_peak_kilobytes() - before) / 2**10


def _peak_kilobytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    models = build(given.device)
    print(f"{'tokens':>6}  {'way':<18} {'ms':>8} {'to eager':>9} {'peak MB':>8}")
    for length in (128, 512):
        ids = torch.randint(1000, 20000, (1, length), device=given.device)
        measured: dict[str, list[float]] = {name: [] for name in WAYS}
        with torch.no_grad():
            for way in ways(models, ids).values():
                way()
            for _ in range(given.rounds):
                for name, way in ways(models, ids).items():
                    measured[name].append(timed(way, given.device)[0])
        for name, times in measured.items():
            ratio = median(a / b for a, b in zip(times, measured["eager"], strict=True))
            peak = peak_megabytes(name, length, given.device)
            print(f"{length:>6}  {name:<18} {median(times) * 1e3:>8.1f} {ratio:>9.3f} {peak:>8.1f}")


if __name__ == "__main__":
    main()
