"""The words of the zoo: whole-word tokenizers, and words whose name says what they do.

`good3` is the fourth word of the role `good`. Words of the role `filler` do nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch import Tensor
from transformers import PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNKNOWN, CLASS, END, MASK = range(len(SPECIAL))
# Where specials go: an encoder is read at its first token, a decoder at the last word.
FRAMES = {
    "encoder": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "decoder": ("[CLS] $A", "[CLS] $A $B"),
}


@dataclass(frozen=True)
class Vocabulary:
    """How many words there are of each role."""

    counts: Mapping[str, int]

    def words(self) -> list[str]:
        """Every word, role after role."""
        return [f"{role}{number}" for role, count in self.counts.items() for number in range(count)]

    def draw(self, random: Random, role: str) -> str:
        """A word of this role."""
        return f"{role}{random.randrange(self.counts[role])}"

    def marks(self, *roles: str) -> Tensor:
        """For each token id, whether it is a word of one of these roles."""
        own = [word.rstrip("0123456789") in roles for word in self.words()]
        return torch.tensor([False] * len(SPECIAL) + own)

    def tokenizer(self, frame: str, longest: int) -> PreTrainedTokenizerFast:
        """A tokenizer of whole words."""
        numbers = {word: number for number, word in enumerate((*SPECIAL, *self.words()))}
        made = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        single, pair = FRAMES[frame]
        made.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=[("[CLS]", CLASS), ("[SEP]", END)]
        )
        names = {"pad": PAD, "unk": UNKNOWN, "cls": CLASS, "sep": END, "mask": MASK}
        return PreTrainedTokenizerFast(
            tokenizer_object=made,
            model_max_length=longest,
            **{f"{name}_token": SPECIAL[number] for name, number in names.items()},
        )
