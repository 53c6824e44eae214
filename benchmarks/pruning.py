"""What removing heads saves: a forward pass of the whole model, and of smaller ones.

    python benchmarks/pruning.py [--device cuda] [--rounds 15]

BERT-base shape, random weights, texts of 128 and of 512 tokens, on one thread. Every layer
loses half or three quarters of its heads: they are removed from the weights, or their output
projection is set to zero, which saves nothing. All models take turns in each round; the ratio is
the median over rounds of the ratio to the whole model in the same round.
"""

import argparse
from copy import deepcopy
from functools import partial
from statistics import median

import torch
from timing import timed
from transformers import BertConfig, BertModel
from transformers.utils import logging

from attlas.models.intervening.removing_heads import smaller_copy

HEADS, WIDTH = 12, 64
SHARES = {"half": 6, "three quarters": 9}


def build(device: str) -> dict[str, torch.nn.Module]:
    logging.set_verbosity_error()
    torch.manual_seed(0)
    whole = BertModel(BertConfig()).eval().to(device)
    paths = [f"encoder.layer.{layer}.attention.self" for layer in range(12)]
    models: dict[str, torch.nn.Module] = {"whole": whole}
    for share, count in SHARES.items():
        models[f"{share} removed"] = smaller_copy(whole, {path: range(count) for path in paths})
        models[f"{share} zeroed"] = zeroed(whole, count)
    return models


def zeroed(whole: BertModel, count: int) -> BertModel:
    model = deepcopy(whole)
    for layer in model.encoder.layer:
        layer.attention.output.dense.weight.data[:, : count * WIDTH] = 0
    return model


@torch.no_grad()
def run(model: torch.nn.Module, ids: torch.Tensor) -> None:
    model(input_ids=ids)


@torch.no_grad()
def distance(models: dict[str, torch.nn.Module], share: str, ids: torch.Tensor) -> float:
    one, two = (models[f"{share} {how}"](input_ids=ids)[0] for how in ("removed", "zeroed"))
    return float((one - two).abs().max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    models = build(given.device)
    for length in (128, 512):
        ids = torch.randint(1000, 20000, (given.batch, length), device=given.device)
        times: dict[str, list[float]] = {name: [] for name in models}
        for number in range(given.rounds + 2):
            for name, model in models.items():
                taken, _ = timed(partial(run, model, ids), given.device)
                if number >= 2:  # the first rounds warm up
                    times[name].append(taken)
        print(f"{given.batch} × {length} tokens on {given.device}")
        for name, model in models.items():
            pairs = zip(times[name], times["whole"], strict=True)
            ratio = median(one / whole for one, whole in pairs)
            size = sum(each.numel() for each in model.parameters()) / 1e6
            took = 1e3 * median(times[name])
            print(
                f"  {name:24} {took:8.1f} ms   {ratio:5.2f} of the whole   {size:6.1f} M parameters"
            )
        for share in SHARES:
            print(f"  {share}: removed and zeroed differ by {distance(models, share, ids):.1g}")


if __name__ == "__main__":
    main()
