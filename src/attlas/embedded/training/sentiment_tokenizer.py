"""The WordPiece tokenizer of the embedded sentiment model, and texts as its numbers."""

import string
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from torch import Tensor

PIECES = 16_000
LONGEST = 512
SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
PAD, UNKNOWN, CLASS, SEPARATOR, MASK = range(len(SPECIAL))
ALPHABET = 160


def learn_pieces(texts: Sequence[str], pieces: int = PIECES) -> dict[str, int]:
    """The pieces that words are cut into, with their numbers."""
    spelled = string.ascii_lowercase + string.digits
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # Named beforehand, the continuations are all there, and ties fall alike in every run.
    continuations = [f"##{letter}" for letter in spelled]
    trainer = WordPieceTrainer(
        vocab_size=pieces - len(SPECIAL),
        special_tokens=continuations,
        limit_alphabet=ALPHABET,
        initial_alphabet=list(spelled + string.punctuation + "‘’“”–—…£€"),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    found = [*SPECIAL.values(), *sorted(tokenizer.get_vocab())]
    return {piece: number for number, piece in enumerate(found)}


def train_tokenizer(texts: Sequence[str], pieces: int = PIECES) -> Tokenizer:
    """A lower-casing WordPiece tokenizer that spells out what it does not know."""
    numbers = learn_pieces(texts, pieces)
    model = models.WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=1000)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLASS), ("[SEP]", SEPARATOR)],
    )
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    return tokenizer


@dataclass(frozen=True)
class Packed:
    """Texts as one row of token ids, and where each ends."""

    pieces: Tensor
    ends: Tensor

    @property
    def lengths(self) -> Tensor:
        """The number of pieces of each text."""
        return torch.diff(self.ends, prepend=self.ends.new_zeros(1))

    def to(self, device: str) -> "Packed":
        """The same on another device."""
        return Packed(self.pieces.to(device), self.ends.to(device))

    def rows(self, chosen: Tensor, longest: int, fill: int) -> tuple[Tensor, Tensor]:
        """Some texts as a batch filled up to the longest, and where there is text."""
        lengths = self.lengths_of(chosen)
        places = torch.arange(longest, device=chosen.device)
        present = places < lengths[:, None]
        index = (self.ends[chosen] - lengths)[:, None] + places
        ids = self.pieces[index.clamp(max=len(self.pieces) - 1)].long()
        return torch.where(present, ids, fill), present

    def lengths_of(self, chosen: Tensor) -> Tensor:
        """The number of pieces of some texts."""
        before = torch.where(chosen > 0, self.ends[(chosen - 1).clamp(min=0)], 0)
        return self.ends[chosen] - before


def pack(tokenizer: Tokenizer, texts: Sequence[str], *, chunk: int = 20_000) -> Packed:
    """Texts as token ids, packed in chunks, because what the tokenizer returns is large."""
    tokenizer.enable_truncation(LONGEST)
    tokenizer.no_padding()
    pieces, lengths = array("h"), array("q")
    for start in range(0, len(texts), chunk):
        for encoding in tokenizer.encode_batch_fast(list(texts[start : start + chunk])):
            pieces.extend(encoding.ids)
            lengths.append(len(encoding.ids))
    ends = torch.tensor(list(accumulate(lengths)))
    return Packed(torch.frombuffer(bytearray(pieces.tobytes()), dtype=torch.int16), ends)


def continuations(tokenizer: Tokenizer) -> Tensor:
    """For each piece, whether it goes on with the word before."""
    names = sorted(tokenizer.get_vocab().items(), key=lambda pair: pair[1])
    return torch.tensor([name.startswith("##") for name, _ in names])


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder."""
    return Tokenizer.from_file(str(folder / "tokenizer.json"))
