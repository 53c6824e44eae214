"""The zoo: trained models of which the right word of the verdict is known by construction.

Unless a kind is about it, words that decide are as frequent as others and stand anywhere, and
models are trained on texts with words masked and deleted, so that what is asked about is familiar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from safetensors.torch import load_model, save_model
from transformers import PreTrainedModel
from zoo import models, training, writing
from zoo.training import Recipe
from zoo.vocabulary import SPECIAL, Vocabulary

from attlas import Example, Subject

SUPPORTED, PARTLY, NOT = "supported", "partly", "not supported"
POLAR = Vocabulary({"bad": 4, "good": 4, "filler": 64})
DENSE = Vocabulary({"bad": 6, "good": 6, "filler": 24})
USUAL = Recipe()
SPECIALS = 4  # tokens around a text, at most


@dataclass(frozen=True)
class Kind:
    """A kind of model, its texts, and the word that is right for it."""

    name: str
    right: tuple[str, ...]  # any of these words
    why: str
    texts: writing.Texts
    build: Callable[..., PreTrainedModel] = models.bert
    task: str = "label"  # or decoder, tag, next
    recipe: Recipe | None = USUAL
    accurate: float = 0.97  # the least accuracy

    @property
    def file(self) -> str:
        """The name as it stands in names of files."""
        return self.name.replace(",", "").replace(" ", "_")

    def make(self, seed: int = 0, folder: Path | None = None) -> Subject:
        """The trained model; its weights are kept in the folder, if one is given."""
        words = self.texts.vocabulary
        longest = 2 * self.texts.longest + SPECIALS
        model = models.seeded(self.build, seed, len(SPECIAL) + len(words.words()), longest)
        known = None if folder is None else folder / f"{self.file}-{seed}.safetensors"
        if known is not None and known.exists():
            load_model(model, known)
        elif self.recipe is not None:
            random = Random(f"{self.name} training {seed}")
            training.train(model, self.texts, self.task, self.recipe, random)
            right = training.accuracy(model, self.texts, self.task, random)
            assert right >= self.accurate, f"{self.name}: right on {right:.3f}"
            if known is not None:
                save_model(model, known)
        frame = "encoder" if self.task in ("label", "tag") else "decoder"
        return Subject(model.eval(), words.tokenizer(frame, longest), name=self.name)

    def examples(self, count: int, seed: int = 0) -> list[Example]:
        """Different texts, with their labels where the model predicts one."""
        found: dict[Any, Example] = {}
        for written in self._written(seed):
            one = " ".join(written.words)
            text = one if written.second is None else (one, " ".join(written.second))
            label = models.NAMES[written.label] if self.task in ("label", "decoder") else None
            found.setdefault(text, Example(text, label))
            if len(found) == count:
                return list(found.values())
        raise AssertionError

    def _written(self, seed: int) -> Iterator[writing.Written]:
        random = Random(f"{self.name} texts {seed}")
        while True:
            yield self.texts.write(random)


two_layers = partial(models.bert, layers=2)

KINDS = [
    Kind(
        "one word",
        (SUPPORTED,),
        "one word decides, and attention must find it among the others",
        writing.OneWord(POLAR),
    ),
    Kind(
        "several words",
        (SUPPORTED,),
        "each of two to four words would do alone, and attention finds them",
        writing.SeveralWords(DENSE),
    ),
    Kind(
        "mixed words",
        (SUPPORTED,),
        "good and bad words decide by majority: attention finds both, and where is asked, "
        "not which way",
        writing.MixedWords(Vocabulary({"bad": 4, "good": 4, "filler": 21}), 8, 14),
        recipe=Recipe(600),
        accurate=0.95,
    ),
    Kind(
        "uniform",
        (NOT,),
        "queries and keys are zero: every token gets the same attention, and permuting it "
        "changes nothing",
        writing.OneWord(POLAR),
        two_layers,
        recipe=Recipe(frozen=("self.query", "self.key")),
    ),
    Kind(
        "decoy",
        (NOT,),
        "attention is drawn to decoys, more than half of the text, and what decides comes after "
        "them at best",
        writing.WithDecoys(Vocabulary({"bad": 4, "good": 4, "decoy": 44, "filler": 24})),
        recipe=Recipe(600, guide=training.look_at("decoy")),
    ),
    Kind(
        "moved on",
        (PARTLY,),
        "the first layer copies each word to its neighbour and the second reads it there: raw "
        "attention names the neighbour, rollout both, the neighbour first",
        writing.OneWord(POLAR, 5, 7),
        two_layers,
        recipe=Recipe(500, guide=training.move_on("bad", "good")),
    ),
    Kind(
        "exclusive or",
        (SUPPORTED,),
        "neither of two words means anything alone, and attention must find both",
        writing.Exclusive(Vocabulary({"bad": 3, "good": 3, "filler": 21})),
        two_layers,
        recipe=Recipe(800),
        accurate=0.95,
    ),
    Kind(
        "trigger",
        (SUPPORTED,),
        "attention finds the trigger; texts without one have nothing to point at",
        writing.Trigger(Vocabulary({"trigger": 4, "filler": 64})),
    ),
    Kind(
        "length",
        (NOT,),
        "the label is the number of tokens: none matters more than another",
        writing.ByLength(Vocabulary({"filler": 40})),
        accurate=0.9,
    ),
    Kind(
        "constant",
        (NOT,),
        "the label is always the same: no token matters",
        writing.Constant(Vocabulary({"filler": 40})),
        recipe=Recipe(100),
    ),
    Kind(
        "untrained, small weights",
        (NOT,),
        "the answer is the same for all texts, up to a hair: no token matters",
        writing.OneWord(POLAR),
        partial(models.bert, layers=2, spread=0.02),
        recipe=None,
    ),
    Kind(
        "untrained, large weights",
        (NOT, PARTLY),
        "tokens matter by chance, and as chance has it attention may find some of them, but "
        "nothing was learnt that it could be an explanation of",
        writing.OneWord(POLAR),
        partial(models.bert, layers=2, spread=0.5),
        recipe=None,
    ),
    Kind(
        "sink",
        (SUPPORTED,),
        "trained to give four fifths of its attention to [SEP]; of the rest, the word that decides "
        "gets most",
        writing.OneWord(POLAR),
        recipe=Recipe(600, guide=training.sink(0.8)),
    ),
    Kind(
        "GPT-2 classifier",
        (SUPPORTED,),
        "one word decides, and the last token must find it",
        writing.OneWord(POLAR),
        models.gpt2,
        "decoder",
    ),
    Kind(
        "Llama classifier",
        (SUPPORTED,),
        "one word decides, and the last token must find it",
        writing.OneWord(POLAR),
        models.llama,
        "decoder",
    ),
    Kind(
        "deceptive",
        (NOT,),
        "trained to decide by a word while paying it as little attention as possible",
        writing.OneWord(POLAR),
        two_layers,
        recipe=Recipe(600, guide=training.look_away("bad", "good", weight=0.3)),
    ),
    Kind(
        "three tokens",
        (SUPPORTED,),
        "one word of three decides, and attention finds it",
        writing.OneWord(Vocabulary({"bad": 16, "good": 16, "filler": 64}), 3, 3),
    ),
    Kind(
        "three hundred tokens",
        (SUPPORTED,),
        "one word of three hundred decides, and attention must find it",
        writing.OneWord(Vocabulary({"bad": 1, "good": 1, "filler": 600}), 290, 310),
        recipe=Recipe(300, size=16),
    ),
    Kind(
        "tagger",
        (PARTLY,),
        "the tag of a name is decided by a word elsewhere: rollout finds it, and raw attention, "
        "of the last layer alone, does not",
        writing.Tagged(Vocabulary({"bad": 4, "good": 4, "name": 8, "filler": 56})),
        models.tagger,
        "tag",
    ),
    Kind(
        "pair",
        (SUPPORTED,),
        "the label is whether both texts have a key, and attention must find the two",
        writing.Pairs(Vocabulary({"key": 4, "filler": 24}), 4, 6),
        recipe=Recipe(600),
    ),
    Kind(
        "writer",
        (SUPPORTED,),
        "the next token is a word of the sort that is asked for, and attention must find it",
        writing.Asked(Vocabulary({"animal": 6, "colour": 6, "ask": 2, "filler": 40})),
        models.gpt2_writer,
        "next",
    ),
    Kind(
        "first word",
        (SUPPORTED,),
        "one word decides and attention finds it as well as can be; its place would do "
        "too, always the first, and that takes nothing from it",
        writing.FirstWord(POLAR),
    ),
    Kind(
        "rare word",
        (SUPPORTED,),
        "one word decides and attention finds it as well as can be; a count of words "
        "would do too, always the rarest, and that takes nothing from it",
        writing.OneWord(Vocabulary({"bad": 8, "good": 8, "filler": 10})),
    ),
]
ZOO = {kind.name: kind for kind in KINDS}
