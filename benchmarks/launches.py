"""What a call to `attlas.explain` takes beside the model: counted, so every run says the same.

    python benchmarks/launches.py [--layers 30] [METHOD]...

On a GPU a pass over a long input is mostly Python that launches kernels. Here a decoder in the
shape of SmolLM2 reads a few tokens on the CPU, by rows and by the gradient of fused attention, as a
GPU would read a long input. Counted are the functions of Python that are called, the operators of
torch that compute something (views do not), and how often Python looks at a value: a GPU has to be
waited for unless the value was brought. The peers are those of `comparisons/long.py`.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any

import torch
from comparisons.long import BACKWARD, CASES, FORWARD
from shapes import number_words, random_ids, smollm
from torch.utils._python_dispatch import TorchDispatchMode

import attlas
from attlas.models.rows import handed, handing

TOKENS = 16
WARM = 3  # calls before the one that is counted
LOOKS = {"_local_scalar_dense", "nonzero"}
COMPUTE_NOTHING = {"_unsafe_view", "empty", "empty_like", "new_empty"}  # beside views
Work = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("methods", nargs="*", default=list(CASES), metavar="METHOD")
    parser.add_argument("--layers", type=int, default=30)
    given = parser.parse_args()
    handing.LONG = 0
    handed.FUSED_ON.add("cpu")
    print("| call | functions of Python | operators | looks |\n|---|---|---|---|")
    for name, work in works(given.layers, given.methods).items():
        print(f"| {name} | {' | '.join(f'{each:,}' for each in counted(work))} |")


def works(layers: int, methods: list[str]) -> dict[str, Work]:
    """The peers and the methods, each on the same tokens."""
    model = smollm("sdpa", layers).to(torch.bfloat16)
    subject, ids = attlas.Subject(model, number_words()), random_ids(TOKENS)

    @torch.no_grad()
    def forward() -> Any:
        return model(torch.tensor([ids]), use_cache=False, logits_to_keep=1)

    def backward() -> Any:
        vectors = model.get_input_embeddings()(torch.tensor([ids])).requires_grad_()
        found = model(inputs_embeds=vectors, use_cache=False, logits_to_keep=1)
        return torch.autograd.grad(found.logits.max(), vectors)

    def explaining(name: str) -> Work:
        return lambda: attlas.explain(subject, ids, name, maps=False)

    ours = {f"`{name}`": explaining(name) for name in methods}
    return {FORWARD: forward, BACKWARD: backward, **ours}


def counted(work: Work) -> tuple[int, int, int]:
    """Functions of Python, operators that compute, and looks at a value."""
    for _ in range(WARM):
        work()
    return calls(work), *operators(work)


def calls(work: Work) -> int:
    found = 0

    def count(_frame: Any, event: str, _given: Any) -> None:
        nonlocal found
        found += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def operators(work: Work) -> tuple[int, int]:
    with Operators() as seen:
        work()
    return seen.found, seen.looks


class Operators(TorchDispatchMode):
    """Counts what a device is given to compute."""

    def __init__(self) -> None:
        super().__init__()
        self.found = self.looks = 0

    def __torch_dispatch__(
        self, operator: Any, types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = operator.overloadpacket.__name__
        self.found += not operator.is_view and name not in COMPUTE_NOTHING
        self.looks += name in LOOKS
        return operator(*args, **(kwargs or {}))


if __name__ == "__main__":
    main()
