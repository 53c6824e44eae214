"""Sentences made from a small grammar, whose label is known by how they are made.

Reviews of films hold few plain negations, contrasts and comparisons, and no hotels or tools.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from attlas.embedded.training.sentiment_data import TrainingText

# How likely a sentence of each construction is positive, where it speaks for its thing.
SURE, LIKELY, TURNED = 0.98, 0.93, 0.88


@dataclass(frozen=True)
class Domain:
    """What reviews of one kind of thing are about, and what they say of it, against and for."""

    things: Sequence[str]
    parts: Sequence[str]
    many: Sequence[str]
    says: tuple[Sequence[str], Sequence[str]]
    happens: tuple[Sequence[str], Sequence[str]]


def phrases(text: str) -> tuple[str, ...]:
    """Phrases written in one string, with commas between."""
    return tuple(each.strip() for each in text.split(","))


def _domain(written: Mapping[str, str]) -> Domain:
    of = {name: phrases(text) for name, text in written.items()}
    says, happens = ((of[f"{what} against"], of[f"{what} for"]) for what in ("says", "happens"))
    return Domain(of["things"], of["parts"], of["many"], says, happens)


WRITTEN = json.loads((Path(__file__).parent / "sentiment_domains.json").read_text("utf-8"))
DEGREES = phrases(WRITTEN["general"]["degrees"])
GENERAL = (phrases(WRITTEN["general"]["against"]), phrases(WRITTEN["general"]["for"]))
BY_NAME = {name: _domain(written) for name, written in WRITTEN["domains"].items()}
DOMAINS = (BY_NAME["film"], *BY_NAME.values())  # films count twice


def clause(domain: Domain, side: int, random: Random) -> str:
    """A part of the thing and what it is like, or what happened: for (1) or against (0)."""
    if random.random() < 0.2:
        return random.choice(domain.happens[side])
    subject, verb = _subject(domain, random)
    return f"{subject} {verb} {_said(domain, side, random)}"


def _subject(domain: Domain, random: Random) -> tuple[str, str]:
    past = random.random() < 0.5
    if random.random() < 0.25:
        return f"the {random.choice(domain.many)}", "were" if past else "are"
    pool = domain.parts if random.random() < 0.7 else domain.things
    first = "the" if random.random() < 0.8 else random.choice(("this", "its", "their", "that"))
    return f"{first} {random.choice(pool)}", "was" if past else "is"


def _said(domain: Domain, side: int, random: Random) -> str:
    said = _quality(domain, side, random)
    if random.random() < 0.25 and not said.startswith(("a ", "too ", "far ")):
        said = f"{random.choice(DEGREES)} {said}"
    if random.random() < 0.2:
        said = f"{said} and {_quality(domain, side, random)}"
    return said


def _quality(domain: Domain, side: int, random: Random) -> str:
    return random.choice(domain.says[side] if random.random() < 0.65 else GENERAL[side])


def _adjective(domain: Domain, side: int, random: Random) -> str:
    while True:
        found = _quality(domain, side, random)
        if not found.startswith("a ") and " " not in found:
            return found


def plainly(domain: Domain, side: int, random: Random) -> str:
    """One, two or three things that all speak one way."""
    count = random.choice((1, 1, 2, 2, 3))
    parts = [clause(domain, side, random) for _ in range(count)]
    if random.random() < 0.25:
        parts.insert(0, _named(domain, side, random))
    return random.choice((" and ", ", ", ". ", "; ", ", and ")).join(parts)


def _named(domain: Domain, side: int, random: Random) -> str:
    said, thing = _adjective(domain, side, random), random.choice(domain.things)
    article = "an" if said[0] in "aeiou" else "a"
    return random.choice((f"{article} {said} {thing}", f"what {article} {said} {thing}"))


def negation(domain: Domain, side: int, random: Random) -> str:
    """The other side denied."""
    said = _adjective(domain, 1 - side, random)
    thing = random.choice(domain.things)
    article = "an" if said[0] in "aeiou" else "a"
    subject, verb = _subject(domain, random)
    part = random.choice(domain.parts)
    forms = [
        f"{subject} {verb} not {said}",
        f"{subject} {verb}n't {said}",
        f"{subject} {verb} n't {said}",
        f"{subject} {verb} not {said} at all",
        f"{subject} {verb} never {said}",
        f"{subject} {verb} by no means {said}",
        f"{subject} {verb} far from {said}",
        f"{subject} {verb} anything but {said}",
        f"{subject} {verb} hardly {said}",
        f"not {article} {said} {thing}",
        f"this is not {article} {said} {thing}",
        f"it was n't {article} {said} {thing}",
        f"it isn't {said}",
        f"never {said}",
        f"not at all {said}",
        f"there is nothing {said} about the {part}",
        f"nothing {said} here",
        f"I do not think the {part} is {said}",
        f"nobody could call the {thing} {said}",
        f"I did not find the {part} {said}",
    ]
    own = (
        [
            f"I did not like the {thing}",
            f"I didn't enjoy the {part}",
            f"I can't recommend this {thing}",
            "I cannot recommend it",
            f"I would not recommend the {thing} to anyone",
            f"the {thing} did not impress me",
            f"the {thing} didn't work for me",
            f"no charm and no {random.choice(('ideas', 'taste', 'care', 'quality', 'style'))}",
            f"I will not come back to this {thing}",
            "not worth the money",
            "not worth your time",
            f"the {part} was not what we were promised",
            f"I have never been so disappointed by a {thing}",
        ],
        [
            f"I have no complaints about the {thing}",
            f"I could not be happier with the {part}",
            f"I can't recommend the {thing} enough",
            f"nothing was wrong with the {part}",
            f"the {thing} did not disappoint",
            f"the {thing} does n't disappoint",
            f"not a dull moment in this {thing}",
            f"without a single {random.choice(('fault', 'weak point', 'problem', 'mistake'))}",
            f"I had no trouble with the {part}",
            f"never a problem with the {thing}",
            f"you will not regret this {thing}",
            f"I did not want the {thing} to end",
            f"there is not one thing I would change about the {part}",
        ],
    )
    return random.choice(forms if random.random() < 0.65 else own[side])


def contrast(domain: Domain, side: int, random: Random) -> str:
    """Something for and something against: what stands in the main place decides."""
    small, main = clause(domain, 1 - side, random), clause(domain, side, random)
    if random.random() < 0.4:
        main = f"{main} and {clause(domain, side, random)}"
    part, other = random.choice(domain.parts), _adjective(domain, 1 - side, random)
    article = "an" if other[0] in "aeiou" else "a"
    forms = [
        f"{small}, but {main}",
        f"{small} but {main}",
        f"{small} , but {main}",
        f"{small}, yet {main}",
        f"{small}. However, {main}",
        f"{small}. Still, {main}",
        f"{small}. Unfortunately, {main}" if side == 0 else f"{small}. Luckily, {main}",
        f"although {small}, {main}",
        f"even though {small}, {main}",
        f"though {small}, {main}",
        f"while {small}, {main}",
        f"{main}, even though {small}",
        f"{main}, although {small}",
        f"despite the {other} {part}, {main}",
        f"in spite of {article} {other} {part}, {main}",
        f"{main} despite the {other} {part}",
        f"it starts {'well' if side == 0 else 'badly'}, but in the end {main}",
        f"the {part} is {other}, but that does not "
        f"{'save' if side == 0 else 'spoil'} the {random.choice(domain.things)}: {main}",
        f"{small}, but on the whole {main}",
        f"I expected {article} {other} {random.choice(domain.things)}, but {main}",
    ]
    return random.choice(forms)


def comparison(domain: Domain, side: int, random: Random) -> str:
    """Better or worse than something else."""
    thing, part = random.choice(domain.things), random.choice(domain.parts)
    other = random.choice(
        (
            "the first one",
            "the last one",
            "the others",
            f"any other {thing}",
            f"most {thing}s",
            "I expected",
            "I had hoped" if side == 0 else "I had feared",
            "the old one",
            "the one we had before",
            "everything else I have tried",
            "last year",
            "the rest",
        )
    )
    same, opposite = _adjective(domain, side, random), _adjective(domain, 1 - side, random)
    much = random.choice(("much ", "far ", "so much ", "a lot ", "even ", "", ""))
    subject, verb = _subject(domain, random)
    word = "better" if side else "worse"
    article = "an" if opposite[0] in "aeiou" else "a"
    forms = [
        f"{subject} {verb} {much}{word} than {other}",
        f"{much}{word} than {other}",
        f"this {thing} is {much}{word} than {other}",
        f"{subject} {verb} {much}more {same} than {other}",
        f"{subject} {verb} {much}less {opposite} than {other}",
        f"{subject} {verb} not as {opposite} as {other}",
        f"{subject} {verb} not half as {opposite} as {other}",
        f"{subject} {verb} {'the best' if side else 'the worst'} I have ever had",
        f"the {'best' if side else 'worst'} {thing} in years",
        f"{'the most' if side else 'the least'} {_adjective(domain, 1, random)} {thing} so far",
        f"{'the least' if side else 'the most'} {_adjective(domain, 0, random)} {thing} so far",
        f"the {part} could not be {word}",
        f"it doesn't get {word} than this {thing}",
    ]
    own = (
        [
            f"I have seen {much}better",
            f"the old {thing} was {much}better",
            f"any other {thing} is better than this one",
            f"there are {much}better {thing}s for the money",
            f"compared with the others, the {part} is {same}",
            f"{other} was {much}better, and this {thing} is {same}",
            f"a step down from {other}",
            f"it does not come close to {other}",
            f"I liked {other} {much}more",
            f"it is no better than {article[:1]} cheap copy",
        ],
        [
            f"I have never had a better {thing}",
            f"no other {thing} comes close",
            f"{other} was {much}worse, and this {thing} is {same}",
            f"the old {thing} was {opposite}, and this one is {much}better",
            f"compared with the others, the {part} is {same}",
            f"a step up from {other}",
            f"it beats {other} in every way",
            f"I like it {much}more than {other}",
            f"you will not find a better {thing} for the money",
            f"a real improvement on {other}",
        ],
    )
    return random.choice(forms if random.random() < 0.6 else own[side])


Construction = Callable[[Domain, int, Random], str]
CONSTRUCTIONS: tuple[tuple[Construction, float], ...] = (
    (plainly, SURE),
    (negation, LIKELY),
    (contrast, TURNED),
    (comparison, LIKELY),
)


def grammar_rows(count: int, *, seed: int) -> list[TrainingText]:
    """Different sentences, as many of each construction and side, the same for the same seed."""
    rows: dict[str, TrainingText] = {}
    for row in islice(_endless(Random(seed)), 20 * count):
        rows.setdefault(row.text.lower(), row)
        if len(rows) == count:
            break
    return list(rows.values())


def _endless(random: Random) -> Iterator[TrainingText]:
    while True:
        for construct, sure in CONSTRUCTIONS:
            for side in (0, 1):
                text = construct(random.choice(DOMAINS), side, random)
                yield TrainingText("grammar", _dressed(text, random), sure if side else 1 - sure)


def _dressed(text: str, random: Random) -> str:
    """With a capital and a full stop, or as the treebank writes: neither, or spaced out."""
    kind = random.random()
    if kind < 0.5:
        return text[0].upper() + text[1:] + random.choice((".", ".", "!", "", "..."))
    return text + (" ." if kind < 0.75 else "")
