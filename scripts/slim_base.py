#!/usr/bin/env python3
"""Make a pretrained encoder small, for a way that takes little and fine-tuning on one set of texts.

scripts/slim_base.py BASE eraser_movies minilm.zip

Weights are in half precision, and the vectors of words are zero that no text of the set has among
the tokens that the model reads; then everything is compressed. On other texts it is another model.
`scripts/gpu_figures.py --base minilm.zip` makes a folder of it again.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import torch
from safetensors.torch import load, save, save_file
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

from attlas.data import texts

SPLITS = ("train", "dev", "test")
WEIGHTS, BYTES = "model.safetensors", "bytes.safetensors"


def slim(base: Path, task: str) -> dict[str, bytes]:
    """The files of the slim encoder."""
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModel.from_pretrained(base, dtype=torch.float16)
    words = model.get_input_embeddings().weight
    seen = torch.zeros(len(words), dtype=torch.bool)
    seen[sorted(pieces(tokenizer, task, model.config.max_position_embeddings))] = True
    with torch.no_grad():
        words[~seen] = 0
    made = {BYTES: save(in_bytes(model.state_dict()))}
    made["config.json"] = model.config.to_json_string().encode()
    return made | {each.name: each.read_bytes() for each in base.glob("*token*.json")}


def unpack(archive: Path, folder: Path) -> None:
    """Make a slim encoder a folder that transformers opens."""
    with ZipFile(archive) as file:
        state = whole(load(file.read(BYTES)))
        file.extractall(folder, [each for each in file.namelist() if each != BYTES])
    save_file(state, folder / WEIGHTS, {"format": "pt"})


def in_bytes(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The two bytes of each number apart: sign and exponent are much alike, and compress well."""
    pairs = {name: each.view(torch.uint8).unflatten(-1, (-1, 2)) for name, each in state.items()}
    return {
        f"{name} {place}": each[..., place].contiguous()
        for place in (0, 1)
        for name, each in pairs.items()
    }


def whole(halves: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The numbers of such bytes."""
    names = dict.fromkeys(each.rpartition(" ")[0] for each in halves)
    pairs = {
        name: torch.stack([halves[f"{name} {place}"] for place in (0, 1)], -1) for name in names
    }
    return {name: each.flatten(-2).view(torch.float16) for name, each in pairs.items()}


def pieces(tokenizer: Any, task: str, longest: int) -> set[int]:
    """The special tokens, and all that the beginnings of texts of a set are made of."""
    found = set(tokenizer.all_special_ids)
    for split in SPLITS:
        for each in texts(task, split=split):
            sides = each.text if isinstance(each.text, tuple) else (each.text,)
            for side in sides:
                found.update(tokenizer(side, truncation=True, max_length=longest)["input_ids"])
    return found


def main(arguments: list[str] | None = None) -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("base", type=Path, help="a folder with a pretrained encoder")
    parser.add_argument("task", help="a set by name")
    parser.add_argument("out", type=Path)
    given = parser.parse_args(arguments)
    stream = BytesIO()
    with ZipFile(stream, "w", ZIP_DEFLATED, compresslevel=9) as file:
        for name, content in slim(given.base, given.task).items():
            file.writestr(name, content)
    given.out.write_bytes(stream.getvalue())
    print(f"{given.out}: {len(stream.getvalue()) / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
