"""Words: the vocabulary of training texts as a tokenizer, and vectors for its words."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from attlas.errors import UsageError, first_line, in_short

SPECIAL = {
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "bos_token": "<s>",
    "eos_token": "</s>",
}
PAD, UNKNOWN, START, END = range(len(SPECIAL))
DIGIT = "0"  # stands for every digit
WORD = r"\w+?(?=n't\b)|n't\b|'(?:s|re|ve|ll|d|m)\b|\w+|[^\w\s]"
SPREAD = 0.1  # standard deviation of random vectors
SENTENCE_ENDS = (".", "!", "?")
MOST_UNPACKED = 8 * 2**30  # bytes that a wheel may take when it is unpacked
_WANTED = re.compile(r"\.(safetensors|json)$")


def word_splitter() -> Tokenizer:
    """A tokenizer without a vocabulary: lower case, one token a word, digits all the same."""
    splitter = Tokenizer(models.WordLevel({SPECIAL["unk_token"]: 0}, SPECIAL["unk_token"]))
    splitter.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Lowercase(), normalizers.Replace(Regex(r"\d"), DIGIT)]
    )
    splitter.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORD), "isolated"),
            pre_tokenizers.Split(Regex(r"\s+"), "removed"),
        ]
    )
    return splitter


def words_in(splitter: Tokenizer, text: str) -> list[str]:
    """The words of a text as the vocabulary has them."""
    normal = splitter.normalizer.normalize_str(text)
    return [word for word, _ in splitter.pre_tokenizer.pre_tokenize_str(normal)]


def build_vocabulary(
    texts: Iterable[Any], longest: int = 512, fewest: int = 1, most: int | None = None
) -> PreTrainedTokenizerFast:
    """A tokenizer of the words that occur `fewest` times or more, the `most` frequent of them.

    A text is a string or a pair of strings.
    """
    splitter, counts = word_splitter(), Counter[str]()
    for text in texts:
        for part in (text,) if isinstance(text, str) else text:
            counts.update(words_in(splitter, part))
    frequent = [word for word, count in counts.most_common(most) if count >= fewest]
    pieces = [*SPECIAL.values(), *(word for word in frequent if word not in SPECIAL.values())]
    splitter.model = models.WordLevel(
        {piece: number for number, piece in enumerate(pieces)}, SPECIAL["unk_token"]
    )
    return _finished(splitter, longest)


def build_characters(texts: Iterable[str], longest: int = 64) -> PreTrainedTokenizerFast:
    """A tokenizer with one token for each character of the texts."""
    pieces = [*SPECIAL.values(), *sorted(set().union(*texts))]
    splitter = Tokenizer(
        models.WordLevel({piece: number for number, piece in enumerate(pieces)}, "<unk>")
    )
    splitter.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    splitter.decoder = decoders.Fuse()
    return _finished(splitter, longest)


def _finished(splitter: Tokenizer, longest: int) -> PreTrainedTokenizerFast:
    """A tokenizer that puts each text between a start and an end."""
    splitter.post_processor = TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> <s>:1 $B:1 </s>:1",
        special_tokens=[("<s>", START), ("</s>", END)],
    )
    splitter.add_special_tokens(list(SPECIAL.values()))
    return PreTrainedTokenizerFast(
        tokenizer_object=splitter,
        model_max_length=longest,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
        **SPECIAL,
    )


def sentence_ends(tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """The ids of the tokens that end a sentence."""
    known = tokenizer.get_vocab()
    return [known[sign] for sign in SENTENCE_ENDS if sign in known]


def random_vectors(count: int, width: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors drawn by the seed, zero for padding."""
    drawn = np.random.default_rng(seed).normal(0.0, SPREAD, (count, width))
    drawn[PAD] = 0.0
    return drawn.astype(np.float32)


def read_vectors(
    place: str | Path, tokenizer: PreTrainedTokenizerFast, seed: int = 0
) -> NDArray[np.float32]:
    """The vectors of a tokenizer's words, `[word, feature]`, from a folder or a wheel.

    The folder holds one table of vectors (safetensors) and the tokenizer of its rows (a JSON file
    with a `model` and a vocabulary). A word's vector is the mean of those of its pieces. Words
    without pieces, and the special tokens, get random vectors of the same spread; padding is zero.
    """
    table, pieces = _checked_vectors(place)
    words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    own = pieces.encode_batch(list(words), add_special_tokens=False)
    drawn = np.random.default_rng(seed).normal(0.0, float(table.std()), (len(words), len(table[0])))
    found = drawn.astype(np.float32)
    for number, (word, encoding) in enumerate(zip(words, own, strict=True)):
        if encoding.ids and word not in SPECIAL.values():
            found[number] = table[encoding.ids].mean(axis=0)
    found[PAD] = 0.0
    return found


def _checked_vectors(place: str | Path) -> tuple[NDArray[np.float32], Tokenizer]:
    """A table of finite numbers that has a row for each piece; all else is one clear error."""
    try:
        table, pieces = _open_vectors(Path(os.path.expanduser(place)))
    except UsageError:
        raise
    except Exception as problem:  # tokenizers and zip files have errors of many kinds
        shown = in_short(str(place), 300)
        raise UsageError(f"word vectors {shown} cannot be read: {first_line(problem)}") from problem
    rows, width = table.shape
    most = max(pieces.get_vocab().values(), default=-1)
    if not width or most >= rows:
        raise UsageError(
            f"the word vectors in {place} have {rows} rows of {width} numbers, and their tokenizer "
            f"numbers its words up to {most}"
        )
    if not np.isfinite(table).all():
        raise UsageError(f"the word vectors in {place} are damaged: some are no numbers")
    return table, pieces


def _open_vectors(place: Path) -> tuple[NDArray[np.float32], Tokenizer]:
    if is_zipfile(place):
        return _unpacked(place)
    if not place.is_dir():
        raise UsageError(f"word vectors are a folder or a wheel, and {place} is neither")
    tables = sorted(place.rglob("*.safetensors"))
    vocabularies = [each for each in sorted(place.rglob("*.json")) if _is_tokenizer(each)]
    if len(tables) != 1 or len(vocabularies) != 1:
        raise UsageError(
            f"{place} has {len(tables)} safetensors files and {len(vocabularies)} tokenizers: word "
            "vectors are one of each"
        )
    with safe_open(tables[0], "np") as file:
        names = list(file.keys())
        if len(names) != 1 or len(file.get_slice(names[0]).get_shape()) != 2:
            raise UsageError(f"{tables[0]} does not hold one table of vectors")
        with np.errstate(over="ignore"):  # what is too large is told as no number
            table = file.get_tensor(names[0]).astype(np.float32)
    return table, Tokenizer.from_file(str(vocabularies[0]))


def _unpacked(wheel: Path) -> tuple[NDArray[np.float32], Tokenizer]:
    """The vectors in a wheel: only tables and JSON files are taken out of it."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder, ZipFile(wheel) as archive:
        chosen = [each for each in archive.infolist() if _WANTED.search(each.filename)]
        size = sum(each.file_size for each in chosen)
        if size > MOST_UNPACKED:
            raise UsageError(
                f"{wheel} would take {size:,} bytes, and word vectors have {MOST_UNPACKED:,} at "
                "most: unpack it, and give the folder"
            )
        for each in chosen:
            archive.extract(each, folder)
        return _open_vectors(Path(folder))


def _is_tokenizer(path: Path) -> bool:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        return False
    model = content.get("model") if isinstance(content, dict) else None
    return isinstance(model, dict) and "vocab" in model
