"""Effective attention: ours, compared with a loop over single heads.

    python benchmarks/effective.py [--tokens 256] [--rounds 5] [--device cuda]

Random attention and values of BERT-base's shape: 12 layers of 12 heads, values of width 64, in
float32. The loop computes the full decomposition of each head's values in float64 and removes the
part of the attention in their left null space, as the method's published code does for a head; ours
works layer by layer, as the method does in a forward pass. Then only ours for causal attention,
where every row has its own null space. Times are wall-clock times: the median of several rounds for
ours, one round for the loop, after a warm-up.
"""

import argparse

import torch
from timing import seconds, timed
from torch import Tensor

from attlas.mathematics.null_space import effective_weights, rounding

LAYERS, HEADS, WIDTH = 12, 12, 64


def random_layers(tokens: int, device: str, causal: bool = False) -> list[tuple[Tensor, Tensor]]:
    """For each layer, attention `[1, head, token, token]` and values `[1, head, token, width]`."""
    generator = torch.Generator().manual_seed(0)
    layers = []
    for _ in range(LAYERS):
        scores = 2 * torch.randn(1, HEADS, tokens, tokens, generator=generator)
        if causal:
            scores = scores.masked_fill(~seen_by(tokens, causal=True), -torch.inf)
        values = torch.randn(1, HEADS, tokens, WIDTH, generator=generator)
        layers.append((scores.softmax(dim=-1).to(device), values.to(device)))
    return layers


def seen_by(tokens: int, causal: bool) -> Tensor:
    every = torch.ones(1, 1, tokens, tokens, dtype=torch.bool)
    return every.tril() if causal else every


def ours(layers: list[tuple[Tensor, Tensor]], visible: Tensor) -> list[Tensor]:
    return [effective_weights(weights, values, visible) for weights, values in layers]


def one_head(weights: Tensor, values: Tensor) -> Tensor:
    left, singular, _ = torch.linalg.svd(values.double(), full_matrices=True)
    rank = int((singular > rounding(values) * singular.max()).sum())
    null = left[:, rank:]
    wide = weights.double()
    return wide - (wide @ null) @ null.T


def by_loop(layers: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    return [
        torch.stack([one_head(a, v) for a, v in zip(weights[0], values[0], strict=True)])[None]
        for weights, values in layers
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = parser.parse_args()
    layers = random_layers(given.tokens, given.device)
    visible = seen_by(given.tokens, causal=False).to(given.device)
    found = ours(layers[:1], visible)
    by_loop(layers[:1])
    difference = max(
        float((a - b).abs().max()) for a, b in zip(found, by_loop(layers[:1]), strict=True)
    )
    slow, _ = timed(lambda: by_loop(layers), given.device)
    fast = seconds(lambda: ours(layers, visible), given.device, given.rounds)
    print(f"{LAYERS} x {HEADS} heads at {given.tokens} tokens on {given.device}")
    print(f"loop {slow * 1e3:.0f} ms, ours {fast * 1e3:.0f} ms")
    print(f"ratio {slow / fast:.1f}, largest difference {difference:.1e}")
    back = seen_by(given.tokens, causal=True).to(given.device)
    causal = random_layers(given.tokens, given.device, causal=True)[:1]
    took, _ = timed(lambda: ours(causal, back), given.device)
    rows = f"{given.tokens} rows, each with its own null space"
    print(f"one causal layer, {rows}: ours {took * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
