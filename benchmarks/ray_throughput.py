"""How much more several workers explain than one, and how fast methods are by model size.

    python benchmarks/ray_throughput.py workers [--device cuda] [--workers 1 2] [--each 32]
    python benchmarks/ray_throughput.py rates [--device cuda] [--largest 7000]

workers: `explain_to` with a built-in model, on a Ray of this machine, or by local processes where
Ray is not installed (one worker is then this process); each worker has so many parts to do, of
`--part` texts. Texts a second are counted while all workers are busy: from the part that ends the
first quarter of the texts, when all of them hold the model and have done some, to the one that ends
nine tenths. So neither their start nor their first calls are counted, and not the end, where some
wait. On a GPU, workers share it. rates: `explain` of texts of 128 tokens, models of
random weights, in this process. Both print a table; `--json FILE` adds each row to a file, and
`python benchmarks/sizing.py FILE` makes the tables of docs/cluster.md from it.
"""

import argparse
import csv
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from rows import put
from run import where
from shapes import texts_of

import attlas
from attlas.engine.cluster import connected
from attlas.explaining import writing_scores
from attlas.progress import Step

METHODS = ("raw_attention", "attn_lrp", "integrated_gradients")
TOKENS = 128
FROM, TO = 0.25, 0.9  # of the texts: what is counted
FACTS = ("date", "versions", "load")  # the load is that before the first worker
ASKED = ("what", "machine", "model", "kind", "millions", "dtype", "method", "workers", "tokens")
LASTS = 2.0  # seconds that a rate is measured for, about
SIZES = {  # millions of weights, without embeddings for the last two: layers, width, heads
    110: ("encoder", 12, 768, 12),
    335: ("encoder", 24, 1024, 16),
    1200: ("decoder", 16, 2048, 32),
    6700: ("decoder", 32, 4096, 32),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["workers", "rates"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--each", type=int, default=32, help="parts for each worker")
    parser.add_argument("--part", type=int, default=writing_scores.CHUNK, help="texts in a part")
    parser.add_argument("--model", default="sentiment")
    parser.add_argument("--method", default="attn_lrp")
    parser.add_argument("--largest", type=int, default=max(SIZES))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for row in shared(given) if given.what == "workers" else rates(given):
        if given.json is not None:
            put(given.json, [row], ASKED)


def machine(device: str) -> str:
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {os.cpu_count()} cores"


def shared(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    subject = attlas.load(given.model, device=given.device)
    engine = "ray" if find_spec("ray") else "local"
    most = attlas.Engine(engine, workers=max(given.workers))
    print(f"{given.method}, {given.model}, {machine(given.device)}, {engine}")
    writing_scores.CHUNK = given.part
    facts = {key: value for key, value in where(given.device).items() if key in FACTS}
    facts["cores"], counts = os.cpu_count(), " ".join(map(str, given.workers))
    facts["asked"] = f"--workers {counts} --each {given.each} --part {given.part}"
    first = 0.0
    with connected(most), tempfile.TemporaryDirectory() as folder:
        for count in given.workers:
            data, texts = Path(folder) / f"{count}.csv", count * given.each * given.part
            write_texts(data, texts)
            workers = attlas.Engine(engine, workers=count)
            watch = Watch(workers, texts)
            written = attlas.explain_to(
                subject,
                data,
                data.with_suffix(".parquet"),
                given.method,
                engine=workers,
                watch=watch,
            )
            assert written.problems == 0 and written.rows == texts
            rate = watch.rate()
            first = first or rate
            print(
                f"{count:>3} workers {rate:>9,.0f} texts a second   {rate / first:.2f} × one   "
                f"counted for {watch.seconds:.1f} s of {written.seconds:.0f} s",
                flush=True,
            )
            yield {
                **{"what": "workers", "device": given.device, "machine": machine(given.device)},
                **{"model": given.model, "method": given.method, "workers": count},
                **{"texts": watch.texts, "rate": rate, "seconds": watch.seconds, "engine": engine},
                **facts,
            }


class Watch:
    """Notes when parts end while all workers hold the model; which of them count."""

    def __init__(self, engine: attlas.Engine, total: int) -> None:
        told = f"; {engine.workers} worker{'' if engine.workers == 1 else 's'}"
        self._all = "" if engine.is_alone else told
        self._total = total
        self._ended: dict[int, float] = {}  # when so many texts were done

    def __call__(self, step: Step) -> None:
        if step.what.endswith(self._all) and FROM * self._total <= step.done <= TO * self._total:
            self._ended.setdefault(step.done, time.perf_counter())

    @property
    def texts(self) -> int:
        return max(self._ended) - min(self._ended)

    @property
    def seconds(self) -> float:
        return max(self._ended.values()) - min(self._ended.values())

    def rate(self) -> float:
        assert self.seconds > 0, "all workers were there too late: give each of them more parts"
        return self.texts / self.seconds


def write_texts(path: Path, count: int) -> None:
    """Reviews, each with a number of its own."""
    known = [str(each.text) for each in attlas.texts("reviews")]
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text"])
        writer.writerows([f"{number} {known[number % len(known)]}"] for number in range(count))


def rates(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    print(f"texts of {TOKENS} tokens a second, {machine(given.device)}")
    for size, shape in SIZES.items():
        if size > given.largest:
            continue
        subject = random_model(given.device, *shape)
        millions = round(sum(each.numel() for each in subject.model.parameters()) / 1e6)
        for method in METHODS:
            rate = rate_of(subject, method)
            dtype = str(subject.model.dtype).removeprefix("torch.")
            print(f"{millions:>5} M {dtype:<9} {method:<22} {rate:>10,.2f}", flush=True)
            yield {
                **{"what": "rate", "device": given.device, "machine": machine(given.device)},
                **{"kind": shape[0], "millions": millions, "dtype": dtype, "method": method},
                **{"tokens": TOKENS, "rate": rate},
            }
        del subject


def random_model(device: str, kind: str, layers: int, width: int, heads: int) -> attlas.Subject:
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        LlamaConfig,
        LlamaForCausalLM,
    )

    torch.manual_seed(0)
    size = {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads}
    dtype = torch.float32 if kind == "encoder" else torch.bfloat16
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            if kind == "encoder":
                config = BertConfig(**size, intermediate_size=4 * width)
                model = BertForSequenceClassification(config)
            else:
                config = LlamaConfig(**size, intermediate_size=11 * width // 4, vocab_size=32000)
                model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    return attlas.Subject(model.eval().to(device), attlas.load().tokenizer)


def rate_of(subject: attlas.Subject, method: str) -> float:
    """Texts a second: as many texts are timed as take about two seconds."""
    seconds, count = 0.0, 2
    while True:
        texts = texts_of(subject, [TOKENS] * count)
        start = time.perf_counter()
        attlas.explain(subject, texts, method, maps=False)
        before, seconds = seconds, time.perf_counter() - start
        if before and (seconds > LASTS / 2 or count >= 4096):
            return count / seconds
        if before:
            count = min(4096, max(2 * count, round(LASTS / seconds * count)))


if __name__ == "__main__":
    main()
