"""From texts to tokens: what is marked special, where each token stands, what is refused."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import tiny
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiny_tokenizers import HOSTILE_TOKEN
from transformers import (
    ByT5Tokenizer,
    CanineTokenizer,
    PreTrainedTokenizer,
    PreTrainedTokenizerFast,
)

from attlas.errors import TextTooLongError, UsageError
from attlas.models.encoding.encode import encode, encode_ids, split_segments
from attlas.models.encoding.token_ids import _places_in_turn


class Unaware(PreTrainedTokenizer):
    """A slow tokenizer of words that says nothing of what it adds to them."""

    def __init__(self, **asked):
        self._words = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "cat": 4, "sat": 5}
        super().__init__(unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", **asked)

    @property
    def vocab_size(self):
        return len(self._words)

    def get_vocab(self):
        return dict(self._words)

    def _tokenize(self, text):
        return text.split()

    def _convert_token_to_id(self, word):
        return self._words.get(word, 0)

    def _convert_id_to_token(self, number):
        return list(self._words)[number]

    def build_inputs_with_special_tokens(self, first, second=None):
        return [1, *first, 2]


SLOW = {"bytes": ByT5Tokenizer, "characters": CanineTokenizer}
NAMES = ("text", "text_a", "text_b")
ENOUGH = 10**9
KINDS = sorted(tiny.TOKENIZER_KINDS)
AROUND = {"wordpiece": (1, 1), "bpe": (0, 0), "unigram": (0, 1), "word_level": (1, 1)}
ODD = {
    "nothing before": "\u0301",
    "combining": "cafe\u0301 n\u0303",
    "astral": "𝔘𝔫𝔦 🧑‍🚀 🇩🇪",
    "right to left": "שלום \u202eabc\u202c مرحبا",
    "no width": "a\u200bb\u2060c\ufeff",
    "controls": "a\x00b\x1bc\x7f\x85d",
    "line ends": "a\r\nb\u2028c\u2029d\x0be",
    "private": "\ue000\uf8ff\U0010fffd",
    "no characters": "\uffff\ufffe\U0001fffe",
    "replaced": "\ufffd a \ufffd\ufffd",
    "ligatures": "ﬁﬂ ℃ ½ …",
    "spaces": "\u00a0a\u3000b\u2003 ",
    "hostile": f"a{HOSTILE_TOKEN}b",
}


@cache
def slow(kind):
    return SLOW[kind]()


def encoded(kind, text, limit=ENOUGH, **options):
    return encode(tiny.tokenizer(kind), text, NAMES, limit, **options)


def surfaces(tokens):
    """What stands in the text where each token is said to be."""
    spans = zip(tokens.segments, tokens.offsets, strict=True)
    return [span and tokens.sources[name][slice(*span)] for name, span in spans]


def written(kind, token):
    """A token without the marks of its tokenizer."""
    if kind == "bpe":
        return tiny.tokenizer(kind).backend_tokenizer.decoder.decode([token])
    return token.removeprefix("##").replace("▁", " ")


# Strings


@pytest.mark.parametrize("kind", KINDS)
def test_the_tokens_are_those_of_the_tokenizer(kind):
    found = encoded(kind, "The film was not good.")
    expected = tiny.tokenizer(kind)("The film was not good.")
    assert found.arguments == dict(expected)
    assert list(found.tokens) == expected.tokens()
    assert found.notes == ()
    before, after = AROUND[kind]
    inside = len(found.tokens) - before - after
    assert found.tokens.special == (True,) * before + (False,) * inside + (True,) * after
    assert found.tokens.special == found.added
    assert set(found.tokens.segments) == {"text"}
    assert found.tokens.sources == {"text": "The film was not good."}


@pytest.mark.parametrize("kind", KINDS)
def test_the_surface_of_a_token_is_the_token(kind):
    tokens = encoded(kind, "The café was naïve, wonderful: 1843 groß!").tokens
    for token, surface, special in zip(tokens, surfaces(tokens), tokens.special, strict=True):
        if special:
            assert surface is None
        elif token not in ("[UNK]", "<unk>"):
            shown = surface.lower() if kind == "wordpiece" else surface
            plain = shown.replace("é", "e").replace("ï", "i") if kind == "wordpiece" else shown
            partial = "\ufffd" in written(kind, token)  # a piece of a character
            assert partial or plain.strip() == written(kind, token).strip()


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_are_about_characters_and_not_bytes(kind):
    text = "🙂 é 東 film"
    tokens = encoded(kind, text).tokens
    ends = [span[1] for span in tokens.offsets if span]
    assert ends == sorted(ends)
    assert ends[-1] == len(text)


@pytest.mark.parametrize(
    ("kind", "text", "special"),
    [
        ("wordpiece", "the [MASK] the", ["[CLS]", "[MASK]", "[SEP]"]),
        ("wordpiece", "the [SEP] the", ["[CLS]", "[SEP]", "[SEP]"]),
        ("bpe", "the<mask> the", ["<mask>"]),
        ("unigram", "the <mask> the", ["<mask>", "</s>"]),
        ("word_level", "the <mask> the", ["<s>", "<mask>", "</s>"]),
    ],
)
def test_special_tokens_in_the_text_are_special(kind, text, special):
    found = encoded(kind, text)
    tokens = found.tokens
    marked = [token for token, mark in zip(tokens, tokens.special, strict=True) if mark]
    assert marked == special
    assert [span is None for span in tokens.offsets] == list(tokens.special)
    assert sum(found.added) == len(special) - 1


@pytest.mark.parametrize("kind", ["wordpiece", "word_level", "unigram"])
def test_an_unknown_word_is_not_special(kind):
    tokens = encoded(kind, "the \u4e02 film").tokens
    place = list(tokens).index(tiny.tokenizer(kind).unk_token)
    assert not tokens.special[place]
    assert surfaces(tokens)[place].strip() == "\u4e02"


def retold(kind, **roles):
    """A tokenizer of this kind whose special tokens play these parts."""
    raw = tiny.tokenizer(kind).backend_tokenizer
    return PreTrainedTokenizerFast(tokenizer_object=raw, **roles)


def test_an_unknown_token_with_another_part_is_special():
    one_for_all = retold("bpe", unk_token="</s>", eos_token="</s>", bos_token="</s>")
    tokens = encode(one_for_all, "a film</s>more", NAMES, ENOUGH).tokens
    assert tokens.special[list(tokens).index("</s>")]


def test_an_unknown_token_that_pads_is_not_special():
    padded = retold("word_level", unk_token="<unk>", pad_token="<unk>", eos_token="</s>")
    tokens = encode(padded, "the zebra", NAMES, ENOUGH).tokens
    assert not tokens.special[list(tokens).index("<unk>")]


# Pairs, words, ids


@pytest.mark.parametrize("kind", KINDS)
def test_pairs(kind):
    found = encoded(kind, ("the film", "was good"))
    tokens = found.tokens
    assert tokens.sources == {"text_a": "the film", "text_b": "was good"}
    assert list(dict.fromkeys(tokens.segments)) == ["text_a", "text_b"]
    for segment, text in tokens.sources.items():
        spans = zip(tokens.segments, tokens.offsets, strict=True)
        pieces = [text[slice(*span)] for name, span in spans if name == segment and span]
        assert "".join(pieces).replace(" ", "") == text.replace(" ", "")
    assert found.arguments["input_ids"] == tiny.tokenizer(kind)("the film", "was good")["input_ids"]


def test_names_of_a_pair():
    found = encode(tiny.tokenizer("wordpiece"), ("a", "b"), ("text", "question", "context"), ENOUGH)
    assert list(found.tokens.sources) == ["question", "context"]
    assert found.tokens.segments == ("question",) * 3 + ("context",) * 2


def test_words():
    parts = split_segments(["New York", "", "e.g.", "!"], NAMES)
    assert parts.sources == {"text": "New York  e.g. !"}
    assert parts.words == {"text": ((0, 8), (9, 9), (10, 14), (15, 16))}
    assert (
        encoded("wordpiece", ["the", "film"]).arguments
        == encoded("wordpiece", "the film").arguments
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["The film was not good.", "naïve 🙂 東京 café"])
def test_ids_are_kept_and_told_apart(kind, text):
    ids = tiny.tokenizer(kind)(text)["input_ids"]
    found, whole = encoded(kind, ids), encoded(kind, text)
    assert found.arguments == {"input_ids": ids, "attention_mask": [1] * len(ids)}
    assert found.tokens.texts == whole.tokens.texts
    assert found.tokens.special == whole.tokens.special
    spans = [span for span in found.tokens.offsets if span]
    covered = {place for start, end in spans for place in range(start, end)}
    assert covered == set(range(len(found.tokens.sources["text"])))


def test_the_bytes_of_a_character_share_its_place():
    ids = tiny.tokenizer("bpe")("a 🙂!")["input_ids"]
    tokens = encoded("bpe", ids).tokens
    assert tokens.sources == {"text": "a 🙂!"}
    assert tokens.texts == ("a", "ĠðŁ", "Ļ", "Ĥ", "!")
    assert tokens.offsets == ((0, 1), (1, 3), (1, 3), (1, 3), (3, 4))


def test_half_a_character_in_ids():
    ids = tiny.tokenizer("bpe")("a🙂")["input_ids"][:-1]
    tokens = encoded("bpe", ids).tokens
    assert tokens.sources == {"text": "a\ufffd"}
    assert tokens.offsets[0] == (0, 1)
    assert {span[1] for span in tokens.offsets[1:]} == {2}


def test_the_text_of_ids_in_word_pieces():
    ids = tiny.tokenizer("wordpiece")("good films")["input_ids"]
    tokens = encoded("wordpiece", ids).tokens
    assert tokens.sources == {"text": "good films"}
    shown = [surface.strip() for surface in surfaces(tokens) if surface is not None]
    assert "".join(shown) == "goodfilms"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_ids(data):
    kind = data.draw(st.sampled_from(KINDS))
    size = len(tiny.tokenizer(kind))
    ids = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=30))
    tokens = encoded(kind, ids).tokens
    text = tokens.sources["text"]
    spans = [span for span in tokens.offsets if span]
    assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(spans))
    assert {i for start, end in spans for i in range(start, end)} == set(range(len(text)))
    inside = [number for number, mark in zip(ids, tokens.special, strict=True) if not mark]
    assert text == tiny.tokenizer(kind).decode(inside)


def test_ids_as_numpy_has_them_or_as_a_range():
    assert encoded("bpe", [np.int64(9), np.int32(10)]).arguments["input_ids"] == [9, 10]
    assert encoded("bpe", range(9, 12)).arguments["input_ids"] == [9, 10, 11]


@pytest.mark.parametrize("number", [-1, 10**6, 2**80])
def test_unknown_ids(number):
    with pytest.raises(UsageError, match=f"unknown token id {number}.* 0 to 345") as caught:
        encoded("wordpiece", [5, number])
    assert not isinstance(caught.value, TextTooLongError)


def test_ids_in_the_gaps_of_a_vocabulary():
    raw = tiny.tokenizer("word_level").backend_tokenizer
    model = type(raw.model)({"<unk>": 0, "a": 1, "far": 7}, unk_token="<unk>")
    gaps = PreTrainedTokenizerFast(tokenizer_object=type(raw)(model), unk_token="<unk>")
    assert encode_ids(gaps, [1, 7], "text").tokens.texts == ("a", "far")
    for number in (2, 6, 8):
        with pytest.raises(UsageError, match=f"unknown token id {number}"):
            encode_ids(gaps, [1, number], "text")


# What is refused


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000", [" "], [""], ["", ""]])
def test_an_empty_text(text):
    with pytest.raises(UsageError, match="the text is empty"):
        encoded("wordpiece", text)


@pytest.mark.parametrize(("pair", "name"), [(("", "b"), "text a"), (("a", " "), "text b")])
def test_half_a_pair(pair, name):
    with pytest.raises(UsageError, match=f"the {name} is empty"):
        encoded("wordpiece", pair)


@pytest.mark.parametrize("text", ["a\ud800b", ("a", "\udfff"), ["a", "\udc00"]])
def test_half_a_character(text):
    with pytest.raises(UsageError, match="lone surrogate"):
        encoded("bpe", text)


def test_a_text_of_which_nothing_is_left():
    with pytest.raises(UsageError, match="leaves nothing"):
        encoded("wordpiece", "\x00\x01")
    with pytest.raises(UsageError, match="leaves nothing"):
        encoded("wordpiece", "[MASK]")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (None, "not NoneType"),
        (3, "not int"),
        (b"abc", "not bytes"),
        (bytearray(b"abc"), "not bytearray"),
        ([], "not a list of 0"),
        ((), "not a tuple of 0"),
        (("a",), r"not a tuple of 1 \(str\)"),
        (("a", "b", "c"), r"not a tuple of 3 \(str\)"),
        ((1, 2), r"not a tuple of 2 \(int\)"),
        (["a", 1], r"not a list of 2 \(str, int\)"),
        ([True, False], r"not a list of 2 \(bool\)"),
        ([1.0], r"not a list of 1 \(float\)"),
        ({"text": "a"}, "not dict"),
        (np.array([1, 2]), "not ndarray"),
    ],
)
def test_what_is_no_text(text, named):
    with pytest.raises(UsageError, match=f"a text is a string.* {named}"):
        encoded("wordpiece", text)


# Texts that are too long


@pytest.mark.parametrize(
    "text", ["the film was good", ("the film", "was good"), [5, 6, 7, 8, 9, 10]]
)
def test_a_text_that_is_too_long(text):
    count = len(encoded("wordpiece", text).tokens)
    with pytest.raises(TextTooLongError, match=f"has {count} tokens and the model takes 4"):
        encoded("wordpiece", text, limit=4)
    assert encoded("wordpiece", text, limit=count).notes == ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [6, 7, 10])
@pytest.mark.parametrize(
    "text",
    [
        "The film was not good, but the music was wonderful.",
        ("The film was not good,", "but the music was wonderful."),
        ("The film", "was not good, but the music was wonderful."),
        ("The film was not good, but the music was", "wonderful"),
    ],
)
def test_a_text_is_cut_as_its_tokenizer_would(kind, limit, text):
    found = encoded(kind, text, limit=limit, truncate=True)
    texts = (text,) if isinstance(text, str) else text
    expected = tiny.tokenizer(kind)(*texts, truncation=True, max_length=limit)
    assert found.arguments == dict(expected)
    assert list(found.tokens) == expected.tokens()
    assert len(found.tokens) == len(found.added) == limit
    assert len(found.notes) == 1


def test_the_note_says_what_was_cut():
    text = "the film was good " + "and long " * 20
    assert encoded("word_level", "the film was good", limit=4, truncate=True).notes == (
        "cut from 6 to 4 tokens, without 'was good'",
    )
    (note,) = encoded("word_level", text, limit=6, truncate=True).notes
    assert note.startswith("cut from 46 to 6 tokens, without 'and long and ")
    assert note.endswith("'…")
    pair = ("the film was good", "the dog sat down")
    assert encoded("word_level", pair, limit=8, truncate=True).notes == (
        "cut from 12 to 8 tokens, without 'was good' and 'sat down'",
    )


def test_ids_are_cut_at_the_end():
    ids = tiny.tokenizer("word_level")("the film was good")["input_ids"]
    found = encoded("word_level", ids, limit=3, truncate=True)
    assert found.arguments == {"input_ids": ids[:3], "attention_mask": [1] * 3}
    assert list(found.tokens) == ["<s>", "the", "film"]
    assert found.notes == ("cut from 6 to 3 tokens, without 'was good'",)


def test_what_may_be_cut_is_cut_only_if_need_be():
    found = encoded("word_level", "the film", limit=4, truncate=True)
    assert list(found.tokens) == ["<s>", "the", "film", "</s>"]
    assert found.notes == ()


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_model_that_has_no_room(limit):
    with pytest.raises(TextTooLongError, match=f"takes {limit} tokens: too few"):
        encoded("wordpiece", ("the film", "was good"), limit=limit, truncate=True)


def test_the_tokenizer_is_left_as_it_was():
    tokenizer = tiny.tokenizer("wordpiece")
    tokenizer("a call that cuts nothing, lest one before has cut")
    before = tokenizer.backend_tokenizer.to_str()
    encoded("wordpiece", "the film was good", limit=4, truncate=True)
    assert tokenizer.backend_tokenizer.to_str() == before


def test_typed_special_tokens_are_cut_like_any_other():
    found = encoded("word_level", "the film <mask> <mask>", limit=4, truncate=True)
    assert list(found.tokens) == ["<s>", "the", "film", "</s>"]


# Tokenizers without offsets


@pytest.mark.parametrize("text", ["a film", "naïve 🙂 東京", " spaced  out ", "a\nb"])
def test_offsets_of_bytes_by_decoding(text):
    tokens = encode(slow("bytes"), text, NAMES, ENOUGH).tokens
    assert tokens.special == (False,) * len(text.encode()) + (True,)
    expected = [(i, i + 1) for i, sign in enumerate(text) for _ in sign.encode()]
    assert tokens.offsets == (*expected, None)


@pytest.mark.parametrize("text", ["a film", "naïve 🙂 東京"])
def test_offsets_of_characters_by_decoding(text):
    tokens = encode(slow("characters"), text, NAMES, ENOUGH).tokens
    assert tokens.offsets == (None, *((i, i + 1) for i in range(len(text))), None)
    assert surfaces(tokens)[1:-1] == list(text)


def test_a_slow_tokenizer_cuts_and_refuses():
    found = encode(slow("bytes"), "a long film", NAMES, 5, truncate=True)
    assert "".join(found.tokens[:-1]) == "a lo"
    assert found.tokens.special[-1]
    assert found.notes == ("cut from 12 to 5 tokens, without 'ng film'",)
    with pytest.raises(UsageError, match="fast tokenizer"):
        encode(slow("bytes"), ("a", "b"), NAMES, ENOUGH)
    with pytest.raises(UsageError, match="unknown token id 9999"):
        encode(slow("bytes"), [9999], NAMES, ENOUGH)


def test_offsets_where_the_tokenizer_drops_the_spaces_before_a_text():
    class Trim(ByT5Tokenizer):
        def _tokenize(self, text):
            return super()._tokenize(text.strip())

    tokens = encode(Trim(), "  ab ", NAMES, ENOUGH).tokens
    assert tokens.offsets == ((2, 3), (3, 4), None)


def test_no_offsets_where_the_text_does_not_come_back():
    class Loud(ByT5Tokenizer):
        def convert_tokens_to_string(self, tokens):
            return super().convert_tokens_to_string(tokens).upper()

    found = encode(Loud(), "film", NAMES, 3, truncate=True)
    assert found.tokens.offsets == (None,) * 3
    assert found.notes == ("cut from 5 to 3 tokens, without 'film'",)


def test_many_ids():
    ids = tiny.tokenizer("bpe")("the film was good " * 500)["input_ids"]
    tokens = encode_ids(tiny.tokenizer("bpe"), ids, "text").tokens
    assert "".join(surfaces(tokens)) == "the film was good " * 500


# Any text


@pytest.mark.parametrize("kind", [*KINDS, *SLOW])
@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_texts(kind, text):
    check(slow(kind) if kind in SLOW else tiny.tokenizer(kind), text)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(text=st.text(min_size=1, max_size=40))
@example(text="\u0130İ ﷺ")
def test_any_text(kind, text):
    check(tiny.tokenizer(kind), text)


def check(tokenizer, text):
    try:
        found = encode(tokenizer, text, NAMES, ENOUGH)
    except UsageError as problem:
        assert "is empty" in str(problem) or "leaves nothing" in str(problem)
        return
    tokens = found.tokens
    assert tokens.sources == {"text": text}
    assert {len(values) for values in found.arguments.values()} == {len(tokens)}
    for span, special in zip(tokens.offsets, tokens.special, strict=True):
        assert not (special and span)
        assert span is None or 0 <= span[0] <= span[1] <= len(text)
    again = encode(tokenizer, found.arguments["input_ids"], NAMES, ENOUGH)
    assert again.tokens.texts == tokens.texts


def test_what_a_slow_tokenizer_adds_is_found_where_it_does_not_say():
    found = encode(Unaware(), "a cat sat", NAMES, ENOUGH)
    assert found.tokens.texts == ("[CLS]", "a", "cat", "sat", "[SEP]")
    assert found.added == found.tokens.special == (True, False, False, False, True)
    assert found.tokens.offsets == (None, (0, 1), (1, 5), (5, 9), None)


@pytest.mark.parametrize(
    "texts, whole",
    [
        (["a", "b", "c"], "abc"),
        (["a", "b", "c"], "a b c"),
        (["a", "##b", "c"], "a ##b c"),
        (["a", " b", "c"], "a bc"),
        (["a", " ", "c"], "a  c"),
        ([" a", " b"], " a  b"),
        (["a", "", "c"], "ac"),
        (["a", "b"], "a-b"),
        (["a", "b"], "a b "),
        ([], ""),
    ],
)
def test_places_of_many_tokens_at_once_are_those_in_turn(texts, whole):
    """Where the texts are joined by nothing or by spaces, no token is looked at by itself."""
    expected, start = [], 0
    for text in texts:
        spaced = not whole.startswith(text, start)
        if not text or not whole.startswith(f" {text}" if spaced else text, start):
            expected = None
            break
        expected.append((start, start + len(text) + spaced))
        start = expected[-1][1]
    wanted = expected if expected is not None and start == len(whole) else []
    assert _places_in_turn(texts, whole) == wanted


def test_a_text_that_no_tokenizer_has_memory_for_is_refused_before_it_is_asked():
    with pytest.raises(TextTooLongError, match="has 10,000,001 characters, and at most 10,000,000"):
        encode(None, "a " * 5_000_000 + "b", ("text", "first", "second"), 8, truncate=True)
