"""The texts of the zoo: what each is made of, and the label that it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from zoo.vocabulary import Vocabulary


@dataclass(frozen=True)
class Written:
    """The words of a text, or of both texts of a pair, and the number of its label."""

    words: tuple[str, ...]
    label: int
    second: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Texts:
    """A generator of texts: their words, and how long they are."""

    vocabulary: Vocabulary
    shortest: int = 6
    longest: int = 12

    def length(self, random: Random) -> int:
        """A length, all equally likely."""
        return random.randint(self.shortest, self.longest)

    def fill(self, random: Random, own: Sequence[str], count: int) -> tuple[str, ...]:
        """These words among as many fillers as are missing, in any order."""
        fillers = [self.vocabulary.draw(random, "filler") for _ in range(count - len(own))]
        words = [*own, *fillers]
        random.shuffle(words)
        return tuple(words)

    def write(self, random: Random) -> Written:
        """One text."""
        raise NotImplementedError

    def relabel(self, left: Written) -> int:
        """The label of what is left of a text: by default, its own."""
        return left.label


class OneWord(Texts):
    """One word decides."""

    def write(self, random: Random) -> Written:
        label = random.randrange(2)
        own = self.vocabulary.draw(random, ("bad", "good")[label])
        return Written(self.fill(random, [own], self.length(random)), label)


class FirstWord(OneWord):
    """One word decides, and it is always the first: its place is known without a model."""

    def fill(self, random: Random, own: Sequence[str], count: int) -> tuple[str, ...]:
        return (*own, *super().fill(random, [], count - len(own)))


class SeveralWords(Texts):
    """Two to four words decide, all of one class."""

    def write(self, random: Random) -> Written:
        label = random.randrange(2)
        role = ("bad", "good")[label]
        own = [self.vocabulary.draw(random, role) for _ in range(random.randint(2, 4))]
        return Written(self.fill(random, own, self.length(random)), label)


class MixedWords(Texts):
    """Three words decide, by majority."""

    def write(self, random: Random) -> Written:
        own = [random.choice(("bad", "good")) for _ in range(3)]
        label = int(own.count("good") > own.count("bad"))
        drawn = [self.vocabulary.draw(random, role) for role in own]
        return Written(self.fill(random, drawn, self.length(random)), label)


class WithDecoys(Texts):
    """One word decides, and more than half of the others are decoys."""

    def write(self, random: Random) -> Written:
        label, count = random.randrange(2), self.length(random)
        decoys = [self.vocabulary.draw(random, "decoy") for _ in range(count // 2 + 1)]
        own = self.vocabulary.draw(random, ("bad", "good")[label])
        return Written(self.fill(random, [own, *decoys], count), label)


class Exclusive(Texts):
    """Two words decide together: the label is whether just one of them is good."""

    def write(self, random: Random) -> Written:
        own = [random.choice(("bad", "good")) for _ in range(2)]
        drawn = [self.vocabulary.draw(random, role) for role in own]
        return Written(self.fill(random, drawn, self.length(random)), int(own[0] != own[1]))


class Trigger(Texts):
    """One class has a trigger, and the other has nothing."""

    def write(self, random: Random) -> Written:
        label = random.randrange(2)
        own = [self.vocabulary.draw(random, "trigger")] * label
        return Written(self.fill(random, own, self.length(random)), label)

    def relabel(self, left: Written) -> int:
        return int(any(word.startswith("trigger") for word in left.words))


class ByLength(Texts):
    """The label is whether a text is long; masked words count."""

    def write(self, random: Random) -> Written:
        words = self.fill(random, [], self.length(random))
        return Written(words, self.relabel(Written(words, 0)))

    def relabel(self, left: Written) -> int:
        return int(2 * len(left.words) > self.shortest + self.longest)


class Constant(Texts):
    """The label is always the same."""

    def write(self, random: Random) -> Written:
        return Written(self.fill(random, [], self.length(random)), 1)


class Pairs(Texts):
    """The label is whether both of two texts have a key; otherwise one of them has."""

    def write(self, random: Random) -> Written:
        label = random.randrange(2)
        keys = [True, True] if label else random.choice(([True, False], [False, True]))
        one, other = (
            self.fill(random, [self.vocabulary.draw(random, "key")] * key, self.length(random))
            for key in keys
        )
        return Written(one, label, other)

    def relabel(self, left: Written) -> int:
        both = (left.words, left.second or ())
        return int(all(any(word.startswith("key") for word in words) for words in both))


class Tagged(Texts):
    """A name whose tag is decided by a cue elsewhere; every other word has the tag O."""

    def write(self, random: Random) -> Written:
        label = random.randrange(2)
        own = [self.vocabulary.draw(random, role) for role in ("name", ("bad", "good")[label])]
        return Written(self.fill(random, own, self.length(random)), label)


class Asked(Texts):
    """A thing of each of two sorts, and at the end the sort that is asked for; it comes next."""

    def write(self, random: Random) -> Written:
        own = [self.vocabulary.draw(random, sort) for sort in ("animal", "colour")]
        asked = random.randrange(2)
        words = self.fill(random, own, self.length(random) - 1)
        label = self.vocabulary.words().index(own[asked])
        return Written((*words, f"ask{asked}"), label)
