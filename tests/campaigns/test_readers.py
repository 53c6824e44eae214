"""Damaged files of every kind that is read: examples, or one clear line, and never a traceback."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from campaigning import times
from pyarrow import feather, ipc, parquet

from attlas.data.files.conllu import read_conllu
from attlas.data.read_examples import read_examples
from attlas.data.sources import read_rows
from attlas.errors import AttlasError

FILES = times(12_000)
ROWS = [{"text": f"a film, number {n}", "label": n % 2, "note": "ä ☃ 𝄞"} for n in range(12)]
WORD = "{}\tword{}\t_\t_\t_\t_\t{}\tnsubj\t_\t_"


def write_seeds(folder):
    """A sound file of each kind."""
    frame = pd.DataFrame(ROWS)
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_csv(folder / "a.tsv", index=False, sep="\t")
    lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS)
    (folder / "a.jsonl").write_text(lines)
    (folder / "a.json").write_text(json.dumps(ROWS))
    (folder / "columns.json").write_text(frame.to_json())
    (folder / "a.csv.gz").write_bytes(gzip.compress((folder / "a.csv").read_bytes()))
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    frame.to_parquet(folder / "a.parquet")
    dates = pa.array(range(12), pa.timestamp("s"))
    table = pa.table({"text": [row["text"] for row in ROWS], "label": dates})
    parquet.write_table(table, folder / "plain.parquet", compression="none", use_dictionary=False)
    with ipc.new_stream(str(folder / "a.arrow"), table.schema) as stream:
        stream.write_table(table, max_chunksize=5)
    feather.write_feather(table, str(folder / "a.feather"), compression="uncompressed")
    sentence = "\n".join(WORD.format(n, n, n - 1) for n in range(1, 6))
    (folder / "a.conllu").write_text(f"{sentence}\n\n{sentence}\n")
    return sorted(folder.iterdir())


SIGNS = [b"\x00", b"\xff\xfe", b'"', b"[" * 3000, b"9" * 5000, b"\xed\xa0\x80", b"\x1b[2J", b"\t"]


def damaged(content, random):
    """The bytes of a file, changed in one of several ways."""
    changed = bytearray(content)
    way = random.integers(6)
    place = int(random.integers(len(changed))) if changed else 0
    if way == 0:
        return bytes(changed[:place])
    if way == 1:
        sign = SIGNS[random.integers(len(SIGNS))]
        return bytes(changed[:place] + sign + changed[place:])
    if way == 2:
        return bytes(changed[:place] + changed[place : place + 9] * 5 + changed[place + 1 :])
    for _ in range((0, 0, 0, 1, 8, 64)[way]):
        changed[random.integers(len(changed))] ^= 1 << int(random.integers(8))
    return bytes(changed)


def read(path, way):
    """Read a file by its path, its folder, a pattern or its address."""
    if path.suffix == ".conllu":
        return len(read_conllu(path))
    source = (path, path.parent, f"{path.parent}/dam*", f"file://{path}")[way]
    return len(read_examples(source).examples), len(read_rows(source))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path):
    (tmp_path / "sound").mkdir()
    (tmp_path / "hurt").mkdir()
    seeds = write_seeds(tmp_path / "sound")
    random, refused = np.random.default_rng(0), 0
    for number in range(FILES):
        seed = seeds[number % len(seeds)]
        path = Path(tmp_path, "hurt", f"damaged{''.join(seed.suffixes)}")
        path.write_bytes(damaged(seed.read_bytes(), random))
        try:
            read(path, number // len(seeds) % 4)
        except AttlasError as problem:
            refused += 1
            assert len(str(problem)) < 2000, str(problem)[:300]
        path.unlink()
    assert 0 < refused < FILES
