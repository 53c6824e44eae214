"""A model that is larger than its device may hold, explained through offload; and on two devices.

    python benchmarks/offloading.py [--device cuda] [--layers 30] [--missing] [--out FILE]

A decoder in the shape of SmolLM2 with random weights is saved, loaded whole, and loaded with a cap
on the device's memory of a third of its size; what does not fit is offloaded to the host on a GPU,
and to disk on a processor. For each method but three of many passes: the seconds of both, the most
memory beside what is loaded, and how far the scores are apart. On a GPU the same model also runs
with its upper half on the processor, which stands for a second device. Each row goes to FILE
(`benchmarks/offloading.json` if not given) when it is there, in the place of its like; `--missing`
leaves out those that were made on this machine with this very code.
"""

import argparse
import json
import tempfile
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import torch
from comparing import MEGABYTE, Setup, largest_difference
from costs_page import OFFLOAD
from rows import Record, made_here, put
from run import where
from shapes import number_words, random_ids, smollm

import attlas
from attlas.errors import AttlasError
from attlas.methods import METHODS

TOKENS = 32
RESULTS = Path(__file__).parent / "offloading.json"
SHARE = 3  # of the model, one part in so many fits
MANY_PASSES = ("hidden_token_attribution", "kernel_shap", "lime")  # as leave_one_out, and for long
Asked = tuple[float, float, Any]  # seconds, megabytes, scores
NAMES = [name for name in METHODS.names() if name not in MANY_PASSES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    setup, facts = Setup(given.device), {**where(given.device), "layers": given.layers}
    there = made_here(given.out, facts) if given.missing else []
    known = {(each["way"], each["method"]) for each in there if each["layers"] == given.layers}
    with tempfile.TemporaryDirectory() as folder:
        smollm("sdpa", given.layers).save_pretrained(folder)
        number_words().save_pretrained(folder)
        for row in measure(setup, folder, known):
            put(given.out, [{**facts, **row}], OFFLOAD)
            print(json.dumps(row), flush=True)


def measure(setup: Setup, folder: str, known: Container[tuple[str, str]]) -> Iterator[Record]:
    """A row for each method and way that is not known."""
    whole = attlas.load(folder, device=setup.device, dtype="float32")
    size = sum(each.numel() * each.element_size() for each in whole.model.parameters())
    ways = spread(setup, folder, size)
    for name in NAMES:
        missing = [way for way in ways if (way, name) not in known]
        if not missing:
            continue
        expected = asked(setup, whole, name)
        for way in missing:
            row = {"method": name, "way": way, "model_megabytes": size / MEGABYTE}
            yield row | beside(setup, ways[way], name, expected)


def spread(setup: Setup, folder: str, size: int) -> dict[str, attlas.Subject]:
    """The model in the ways in which it is more than one device may hold."""
    memory = {0: size // SHARE, "cpu": 64 * size} if setup.on_gpu else {"cpu": size // SHARE}
    capped = attlas.load(
        folder,
        dtype="float32",
        device_map="auto",
        max_memory=memory,
        offload_folder=Path(folder) / "offloaded",
    )
    return {
        "offloaded": capped,
        **({"on two devices": on_two_devices(folder, setup.device)} if setup.on_gpu else {}),
    }


def beside(setup: Setup, subject: attlas.Subject, name: str, expected: Asked) -> Record:
    """What a method takes, beside what it takes of the whole model."""
    seconds, megabytes, scores = expected
    whole = {"whole_seconds": seconds, "whole_megabytes": megabytes}
    try:
        again, most, found = asked(setup, subject, name)
    except (AttlasError, RuntimeError) as problem:
        return {**whole, "note": str(problem).splitlines()[0][:200]}
    apart = largest_difference([found], [scores])
    return {**whole, "seconds": again, "megabytes": most, "difference": apart, "note": ""}


def asked(setup: Setup, subject: attlas.Subject, name: str) -> Asked:
    ids = random_ids(TOKENS)
    found = attlas.explain(subject, ids, name, maps=False).scores
    seconds, megabytes = setup.peak(lambda: attlas.explain(subject, ids, name, maps=False))
    return round(seconds, 4), round(megabytes, 2), found


def on_two_devices(folder: str, device: str) -> attlas.Subject:
    """The model with its upper half on the processor: each half takes its inputs to its device."""
    from accelerate.hooks import AlignDevicesHook, add_hook_to_module

    subject = attlas.load(folder, device=device, dtype="float32")
    model: Any = subject.model
    layers = model.model.layers
    for number, layer in enumerate(layers):
        place = torch.device(device, 0) if number < len(layers) // 2 else torch.device("cpu")
        add_hook_to_module(layer.to(place), AlignDevicesHook(execution_device=place))
    add_hook_to_module(model.model.norm, AlignDevicesHook(execution_device=torch.device(device, 0)))
    return subject


if __name__ == "__main__":
    main()
