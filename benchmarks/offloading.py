"""A model that is larger than its device may hold, explained through offload; and on two devices.

    python benchmarks/offloading.py [--device cuda] [--layers 30] [--out FILE]

A decoder in the shape of SmolLM2 with random weights is saved, loaded whole, and loaded with a cap
on the device's memory of a third of its size; what does not fit is offloaded to the host on a GPU,
and to disk on a processor. For each method but three of many passes: the seconds of both, the most
memory beside what is loaded, and how far the scores are apart. On a GPU the same model also runs
with its upper half on the processor, which stands for a second device.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from comparing import MEGABYTE, Setup, largest_difference
from run import where
from shapes import number_words, random_ids, smollm

import attlas
from attlas.errors import AttlasError
from attlas.methods import METHODS

TOKENS = 32
RESULTS = Path(__file__).parent / "offloading.json"
SHARE = 3  # of the model, one part in so many fits
MANY_PASSES = ("hidden_token_attribution", "kernel_shap", "lime")  # as leave_one_out, and for long
NAMES = [name for name in METHODS.names() if name not in MANY_PASSES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    setup, facts = Setup(given.device), where(given.device)
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        smollm("sdpa", given.layers).save_pretrained(folder)
        number_words().save_pretrained(folder)
        for row in measure(setup, folder):
            rows.append(json.dumps({**facts, "layers": given.layers, **row}, ensure_ascii=False))
            given.out.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
            print(json.dumps(row), flush=True)


def measure(setup: Setup, folder: str) -> Iterator[dict[str, Any]]:
    whole = attlas.load(folder, device=setup.device, dtype="float32")
    size = sum(each.numel() * each.element_size() for each in whole.model.parameters())
    expected = {name: asked(setup, whole, name) for name in NAMES}
    memory = {0: size // SHARE, "cpu": 64 * size} if setup.on_gpu else {"cpu": size // SHARE}
    capped = attlas.load(
        folder,
        dtype="float32",
        device_map="auto",
        max_memory=memory,
        offload_folder=Path(folder) / "offloaded",
    )
    ways = {"offloaded": capped}
    if setup.on_gpu:
        ways["on two devices"] = on_two_devices(folder, setup.device)
    for way, subject in ways.items():
        for name, (seconds, megabytes, scores) in expected.items():
            row = {"method": name, "way": way, "model_megabytes": size / MEGABYTE}
            row |= {"whole_seconds": seconds, "whole_megabytes": megabytes}
            try:
                again, most, found = asked(setup, subject, name)
            except (AttlasError, RuntimeError) as problem:
                yield {**row, "note": str(problem).splitlines()[0][:200]}
                continue
            apart = largest_difference([found], [scores])
            yield {**row, "seconds": again, "megabytes": most, "difference": apart, "note": ""}


def asked(setup: Setup, subject: attlas.Subject, name: str) -> tuple[float, float, Any]:
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
