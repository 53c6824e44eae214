"""Tiny real fast tokenizers, trained on a few sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import combinations
from math import log

from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

LONGEST = 64
# Text that would end a page's script early if a view wrote it unescaped.
HOSTILE_TOKEN = "</script>"

CORPUS = (
    "The cat sat on the mat and the dog lay down beside it.",
    "A quick brown fox jumps over the lazy dog near the river bank.",
    "The film was not good, but the music was wonderful and the acting honest.",
    "I did not like this film: it was long, loud and boring.",
    "What a wonderful evening! We laughed, we cried, we will come back.",
    "The keys to the cabinet are on the kitchen table.",
    "The doctor who met the nurses yesterday was very kind.",
    "Paris is the capital of France; Berlin is the capital of Germany.",
    "Who wrote the book that lies on the old wooden chair?",
    "Ada Lovelace wrote the first program in London in 1843.",
    "Translate English to German: the house is small.",
    "Das Haus ist klein, aber der Garten ist groß und schön.",
    "Le café est fermé, mais la forêt reste ouverte à tous.",
    "El niño comió una manzana mañana por la tarde.",
    "Быстрая лиса прыгает через ленивую собаку.",
    "東京は日本の首都です。",
    "naïve façade, jalapeño, Ångström, 5 € and 10 £.",
    "Smile 🙂 and wave 👋 at the train 🚂.",
    "She sold seven shells, he bought eleven apples and two pears.",
    "If it rains tomorrow, nobody should walk home without an umbrella.",
    "Because the bridge was closed, every bus took another road through town.",
    "My neighbour never listens; his children always sing at night.",
    "The new phone is cheap, light and fast, yet its screen breaks easily.",
    "Bad service, cold soup, rude waiter: never again!",
    "Great food, friendly people, fair prices: five stars.",
    "Nothing about this hotel was terrible, and nothing was great either.",
    "In the beginning there was a question; at the end there were three.",
    "def add(first, second): return first + second",
    "Prices rose by 3.5 percent in May and fell by 2 percent in June.",
    "Some birds fly south when winter comes, others stay and wait for spring.",
)


def template(single: str, pair: str, trained: Tokenizer) -> processors.TemplateProcessing:
    """A post-processor that puts these special tokens around one text or two."""
    pieces = dict.fromkeys(piece.split(":")[0] for piece in pair.split())
    specials = [(piece, trained.token_to_id(piece)) for piece in pieces if piece[0] != "$"]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=specials)


def frequent_pieces(words: Sequence[str], most: int, inside: str = "") -> dict[str, int]:
    """Every character of the words, then the pieces that cover most of them, with their counts.

    The trainers of WordPiece and Unigram give different results in every process; this does not.
    """
    counts: Counter[str] = Counter()
    for word in words:
        for start, end in combinations(range(len(word) + 1), 2):
            counts[(inside if start else "") + word[start:end]] += 1
    characters = {prefix + letter for word in words for letter in word for prefix in ("", inside)}
    for letter in characters:
        counts[letter] = max(counts[letter], 1)
    ranked = sorted(
        counts, key=lambda piece: (piece not in characters, -counts[piece] * len(piece), piece)
    )
    return {piece: counts[piece] for piece in ranked[:most]}


def words_of(raw: Tokenizer) -> list[str]:
    """The corpus as this tokenizer's normalizer and pre-tokenizer split it."""
    lines = (raw.normalizer.normalize_str(line) for line in CORPUS)
    return [word for line in lines for word, _ in raw.pre_tokenizer.pre_tokenize_str(line)]


def finish(raw: Tokenizer, specials: dict[str, str]) -> Tokenizer:
    """The tokenizer with its special tokens and the hostile one marked as such."""
    raw.add_special_tokens(list(specials.values()))
    raw.add_tokens([AddedToken(HOSTILE_TOKEN, normalized=False)])
    return raw


def wordpiece(specials: dict[str, str]) -> Tokenizer:
    """Like that of BERT uncased."""
    raw = Tokenizer(models.WordPiece(unk_token=specials["unk_token"]))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.decoder = decoders.WordPiece()
    pieces = [*specials.values(), *frequent_pieces(words_of(raw), most=340, inside="##")]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    raw.model = models.WordPiece(vocabulary, unk_token=specials["unk_token"])
    finish(raw, specials)
    raw.post_processor = template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", raw)
    return raw


def byte_pairs(specials: dict[str, str]) -> Tokenizer:
    """Like GPT-2's: bytes, and no special tokens around a text."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=380,
        special_tokens=list(specials.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(CORPUS, trainer)
    return finish(raw, specials)


def unigram(specials: dict[str, str]) -> Tokenizer:
    """Like T5's: SentencePiece pieces that include the space before them."""
    raw = Tokenizer(models.Unigram())
    raw.normalizer = normalizers.NFKC()
    raw.pre_tokenizer = pre_tokenizers.Metaspace()
    raw.decoder = decoders.Metaspace()
    counts = frequent_pieces(words_of(raw), most=300)
    scores = [(piece, log(count / sum(counts.values()))) for piece, count in counts.items()]
    unknown = list(specials).index("unk_token")
    raw.model = models.Unigram([(text, 0.0) for text in specials.values()] + scores, unknown)
    finish(raw, specials)
    raw.post_processor = template("$A </s>", "$A </s> $B </s>", raw)
    return raw


def word_level(specials: dict[str, str]) -> Tokenizer:
    """Whole words, with RoBERTa's special tokens around them."""
    raw = Tokenizer(models.WordLevel(unk_token=specials["unk_token"]))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(
        vocab_size=400, special_tokens=list(specials.values()), show_progress=False
    )
    raw.train_from_iterator(CORPUS, trainer)
    finish(raw, specials)
    raw.post_processor = template("<s> $A </s>", "<s> $A </s> </s> $B </s>", raw)
    return raw


BERT_SPECIALS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
SENTENCE_SPECIALS = {
    "bos_token": "<s>",
    "pad_token": "<pad>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}
WITH_SEGMENTS = ["input_ids", "token_type_ids", "attention_mask"]
WITHOUT_SEGMENTS = ["input_ids", "attention_mask"]

KINDS: dict[str, Callable[[], Tokenizer]] = {
    "wordpiece": partial(wordpiece, BERT_SPECIALS),
    "bpe": partial(byte_pairs, SENTENCE_SPECIALS),
    "unigram": partial(unigram, SENTENCE_SPECIALS),
    "word_level": partial(word_level, SENTENCE_SPECIALS),
}


@cache
def tokenizer(kind: str) -> PreTrainedTokenizerFast:
    """The tokenizer of one of `KINDS`; the same object every time, so do not change it."""
    has_segments = kind == "wordpiece"
    return PreTrainedTokenizerFast(
        tokenizer_object=KINDS[kind](),
        model_max_length=LONGEST,
        model_input_names=WITH_SEGMENTS if has_segments else WITHOUT_SEGMENTS,
        clean_up_tokenization_spaces=False,
        **(BERT_SPECIALS if has_segments else SENTENCE_SPECIALS),
    )
