"""Files that are damaged, foreign or of another version: one line, one kind of error."""

import json
import pickle
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from results.records import film, maps
from safetensors.numpy import save

from attlas.errors import ResultFileError
from attlas.results import Explanation, Maps
from attlas.results.support.files import FORMAT, _digest, read_record, write_record

BROAD = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "film.safetensors"
    return film(maps=maps(film().tokens)).save(path).read_bytes()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("damaged") / "film.safetensors"


def refused(path, kind=Explanation):
    with pytest.raises(ResultFileError) as caught:
        kind.load(path)
    message = str(caught.value)
    assert "\n" not in message
    assert repr(str(path)) in message
    return message


def rewritten(path, header, arrays, **metadata):
    """A file whose digest is right, whatever is in it."""
    text = header if isinstance(header, str) else json.dumps(header)
    given = {"attlas": text, "digest": _digest(text, arrays), **metadata}
    path.write_bytes(save(arrays, metadata=given))
    return path


def parts(path, whole):
    path.write_bytes(whole)
    with read_record(path, "explanation") as (header, arrays):
        return header, arrays


def test_the_file_as_it_should_be(path, whole):
    path.write_bytes(whole)
    assert Explanation.load(path).method == "gradient_attention"
    assert Explanation.load(str(path)).maps is not None


# Damage


@BROAD
@given(share=st.floats(0, 1, exclude_max=True))
@example(share=0.0)
def test_a_file_cut_short(path, whole, share):
    path.write_bytes(whole[: int(share * len(whole))])
    refused(path)


@BROAD
@given(data=st.data())
def test_a_byte_changed(path, whole, data):
    """Anywhere: in the header's length, in the header, in the arrays."""
    place = data.draw(st.integers(0, len(whole) - 1) | st.integers(0, 200))
    flip = data.draw(st.integers(1, 255))
    damaged = bytearray(whole)
    damaged[place] ^= flip
    if harmless(whole, place):
        return
    path.write_bytes(bytes(damaged))
    refused(path)


def test_a_byte_of_the_numbers_changed(path, whole):
    (size,) = struct.unpack("<Q", whole[:8])
    for place in range(8 + size, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert refused(path).endswith("its content is not what was written")


def harmless(whole, place):
    """Whether this byte is one of the spaces that fill up the header."""
    (size,) = struct.unpack("<Q", whole[:8])
    return 8 <= place < 8 + size and not whole[place : 8 + size].strip()


@BROAD
@given(st.binary(max_size=200))
@example(b"")
@example(b"a text file\n")
@example(struct.pack("<Q", 2) + b"{}")
@example(struct.pack("<Q", 2) + b"[]")
@example(struct.pack("<Q", 2**63) + b"{}")
@example(pickle.dumps({"scores": [1.0]}))
def test_files_that_are_something_else(path, content):
    path.write_bytes(content)
    refused(path)
    refused(path, Maps)


def test_nothing_in_a_file_is_run(path, tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    path.write_bytes(pickle.dumps(Trap()))
    refused(path)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_or_no_file(tmp_path):
    assert refused(tmp_path / "missing").startswith("there is no file")
    refused(tmp_path)
    refused(tmp_path / "a\nb")
    with pytest.raises(ResultFileError):
        Explanation.load(f"{tmp_path}/a\0b")


# Files of safetensors that are not ours, or not what was asked for


def test_another_file_of_safetensors(path):
    path.write_bytes(save({"weight": np.zeros(3)}))
    assert refused(path).endswith("it has no header of Attlas")
    path.write_bytes(save({"weight": np.zeros(3)}, metadata={"format": "pt"}))
    assert refused(path).endswith("it has no header of Attlas")


def test_another_kind(path, whole):
    path.write_bytes(whole)
    assert refused(path, Maps).endswith("holds 'explanation', not 'maps'")
    maps().save(path)
    assert refused(path).endswith("holds 'maps', not 'explanation'")


@pytest.mark.parametrize("number", [0, FORMAT + 1, None, "1", [1]])
def test_another_format(path, whole, number):
    header, arrays = parts(path, whole)
    rewritten(path, {**header, "format": number}, arrays, digest="of a kind yet to come")
    assert refused(path).endswith(f"has format {number!r}; this version of Attlas reads {FORMAT}")


@pytest.mark.parametrize("text", ["[]", "3", "null", '"a"', "{", "", "[" * 100_000, "{}", "\x00"])
def test_a_header_that_is_no_record(path, text):
    rewritten(path, text, {"scores": np.zeros(7)})
    refused(path)


def test_no_digest_or_another(path, whole):
    header, arrays = parts(path, whole)
    for digest in ("", "0" * 64):
        rewritten(path, header, arrays, digest=digest)
        assert refused(path).endswith("is damaged: its content is not what was written")


# Records that are whole but make no sense


@pytest.mark.parametrize("name", ["scores", "maps.0", "maps.1"])
def test_a_missing_array(path, whole, name):
    header, arrays = parts(path, whole)
    rewritten(path, header, {key: array for key, array in arrays.items() if key != name})
    assert refused(path).endswith(f"is damaged: KeyError: {name!r}")


@pytest.mark.parametrize("scores", [np.zeros(6), np.zeros(8), np.zeros((7, 1)), np.zeros(())])
def test_scores_of_another_length(path, whole, scores):
    header, arrays = parts(path, whole)
    refused(rewritten(path, header, {**arrays, "scores": scores}))


@pytest.mark.parametrize(
    "scores", [np.zeros(7, dtype=np.int64), np.zeros(7, dtype=bool), np.full(7, np.nan)]
)
def test_scores_of_another_type(path, whole, scores):
    header, arrays = parts(path, whole)
    refused(rewritten(path, header, {**arrays, "scores": scores}))


def test_maps_of_another_shape(path, whole):
    header, arrays = parts(path, whole)
    refused(rewritten(path, header, {**arrays, "maps.0": np.zeros((2, 3, 4), dtype=np.float32)}))


@pytest.mark.parametrize("entry", ["tokens", "target", "origin", "prediction", "notes", "maps"])
@pytest.mark.parametrize("value", ["missing", 3, [3], {"a": 1}, "text"])
def test_an_entry_of_another_kind(path, whole, entry, value):
    header, arrays = parts(path, whole)
    changed = {**header, entry: value}
    if value == "missing":
        del changed[entry]
    rewritten(path, changed, arrays)
    if entry in ("notes", "prediction") and value != "missing":
        return  # anything that can be listed is accepted
    refused(path)


@pytest.mark.parametrize(
    "change",
    [{"texts": ["a"]}, {"offsets": [3] * 7}, {"words": []}, {"sources": 3}, {"grid": [1]}],
)
def test_tokens_that_do_not_fit(path, whole, change):
    header, arrays = parts(path, whole)
    refused(rewritten(path, {**header, "tokens": {**header["tokens"], **change}}, arrays))


def test_an_unknown_entry_of_the_origin(path, whole):
    header, arrays = parts(path, whole)
    header["origin"]["surprise"] = 1
    refused(rewritten(path, header, arrays))


# Writing


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"value": float("nan")}, {}),
        ({"value": object()}, {}),
        ({}, {"a": np.array(["text"])}),
        ({}, {"a": np.array([object()])}),
        ({}, {"a": np.zeros(2, dtype=np.longdouble)}),
    ],
)
def test_what_cannot_be_written(tmp_path, header, arrays):
    (tmp_path / "a").write_text("old")
    with pytest.raises(ResultFileError, match="cannot write") as caught:
        write_record(tmp_path / "a", "thing", header, arrays)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_was_read_does_not_change_with_the_file(tmp_path):
    path = write_record(tmp_path / "a", "thing", {}, {"a": np.ones(1000)})
    with read_record(path, "thing") as (_, arrays):
        found = arrays["a"]
    path.write_bytes(b"")
    assert found.sum() == 1000
