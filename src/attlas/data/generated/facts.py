"""facts: stories and questions whose supporting sentences are known, like bAbI tasks 1 to 3.

Persons go from place to place, take objects and drop them. To say where a person is takes one
sentence of the story. To say where an object is takes two: the carrier went there, and took or
dropped it. To say where it was before takes three. Weston et al., Towards AI-Complete Question
Answering, 2015.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from zlib import crc32

from attlas.data.example import Example, Span
from attlas.errors import UnknownNameError

PERSONS = ("Nadia", "Bruno", "Clara", "Idris")
OBJECTS = ("lantern", "basket", "violin", "kettle")
PLACES = ("bakery", "harbour", "library", "museum", "orchard", "station")
GOING = ("entered", "reached", "visited")
TAKING = "took"
LEAVING = "dropped"
KINDS = ("one", "two", "three")
LENGTHS = (4, 8)

SENTENCE = re.compile(r"(\w+) (\w+) the (\w+)\.")
QUESTIONS = {
    "one": re.compile(r"where is (?P<asked>\w+) now\?"),
    "two": re.compile(r"where is the (?P<asked>\w+)\?"),
    "three": re.compile(r"where was the (?P<asked>\w+) before it reached the (?P<place>\w+)\?"),
}


@dataclass(frozen=True)
class Event:
    """One sentence of a story: who did what, and to which place or object."""

    person: str
    verb: str
    thing: str

    @property
    def sentence(self) -> str:
        """The event as a sentence."""
        return f"{self.person} {self.verb} the {self.thing}."


@dataclass(frozen=True)
class Solution:
    """The answer to a question, and the numbers of the sentences it follows from.

    `source` is the one of `facts` that names the answer.
    """

    answer: str
    source: int
    facts: tuple[int, ...]


@dataclass
class World:
    """Where everyone and everything is, and which sentences say so; an object is taken once."""

    at: dict[str, tuple[str, int]] = field(default_factory=dict)
    trails: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    taken: dict[str, tuple[str, int]] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)

    def carried(self, person: str) -> list[str]:
        """List what a person carries."""
        return [
            thing
            for thing, (holder, _) in self.taken.items()
            if holder == person and thing not in self.left
        ]

    def allows(self, event: Event) -> bool:
        """Whether an event can happen now."""
        if event.verb in GOING:
            return self.at.get(event.person, ("", 0))[0] != event.thing
        if event.verb == TAKING:
            return event.person in self.at and event.thing not in self.taken
        return event.thing in self.carried(event.person)

    def happen(self, number: int, event: Event) -> None:
        """Update the world with the next sentence of the story."""
        if event.verb in GOING:
            self.at[event.person] = (event.thing, number)
            for thing in self.carried(event.person):
                self.trails[thing].append(self.at[event.person])
        elif event.verb == TAKING:
            self.taken[event.thing] = (event.person, number)
            self.trails[event.thing] = [self.at[event.person]]
        else:
            self.left[event.thing] = number

    def of_person(self, person: str) -> Solution | None:
        """Say where a person is."""
        if person not in self.at:
            return None
        place, number = self.at[person]
        return Solution(place, number, (number,))

    def of_object(self, thing: str) -> Solution | None:
        """Say where an object is."""
        if thing not in self.trails:
            return None
        place, number = self.trails[thing][-1]
        handled = self.left.get(thing, self.taken[thing][1])
        return Solution(place, number, tuple(sorted((number, handled))))

    def of_object_before(self, thing: str, place: str) -> Solution | None:
        """Say where an object was before a place; None if it began there or came there twice."""
        trail = self.trails.get(thing, [])
        visits = [index for index, (where, _) in enumerate(trail) if where == place]
        if len(visits) != 1 or visits == [0]:
            return None
        answer, number = trail[visits[0] - 1]
        facts = (number, self.taken[thing][1], trail[visits[0]][1])
        return Solution(answer, number, tuple(sorted(facts)))


def generate(
    count: int, seed: int, kind: str | None = None, *, held_out: bool | None = True
) -> list[Example]:
    """Generate stories of four to eight sentences, each with a question.

    `kind` says how many facts the question needs. The text is the pair (question, story), the label
    is the place asked for, and the spans are the supporting sentences in the story. `fields` has
    the kind, the numbers of the supporting sentences (`facts`) and the span of the answer in the
    story (`source`). One text in eight is held out from training: `held_out` chooses those, the
    others, or both if None.
    """
    if kind is not None and kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    random = Random(seed)
    examples: list[Example] = []
    while len(examples) < count:
        example = _write(random, kind or random.choice(KINDS))
        if held_out is None or is_held_out(example) == held_out:
            examples.append(example)
    return examples


def is_held_out(example: Example) -> bool:
    """Whether a text is held out from training."""
    return crc32(" ".join(example.text).encode()) % 8 == 0


def question_and_story(example: Example) -> tuple[str, str]:
    """Return the question and the story."""
    question, story = example.text[0], example.text[1]
    return question, story


def read_story(story: str) -> list[Event]:
    """Read the events of a story."""
    return [Event(*match.groups()) for match in SENTENCE.finditer(story)]


def replay(events: Sequence[Event]) -> World | None:
    """Return the world after a story; None if the story is impossible."""
    world = World()
    for number, event in enumerate(events):
        if not world.allows(event):
            return None
        world.happen(number, event)
    return world


def solve(question: str, story: str) -> Solution | None:
    """Find the answer and its facts; None if the story is impossible or does not give an answer."""
    world = replay(read_story(story))
    for kind, form in QUESTIONS.items():
        match = form.fullmatch(question)
        if match and world:
            return _answer(world, kind, *match.groups())
    return None


def sentence_spans(story: str) -> list[Span]:
    """Locate each sentence of a story."""
    return [match.span() for match in SENTENCE.finditer(story)]


def thing_spans(story: str) -> list[Span]:
    """Locate the place or object that each sentence names."""
    return [match.span(3) for match in SENTENCE.finditer(story)]


def make_example(question: str, story: str, kind: str) -> Example:
    """Make an Example of a question and its story, with the answer and its facts."""
    solution = solve(question, story)
    if solution is None:
        raise ValueError(f"the story does not answer the question: {question} {story}")
    sentences = sentence_spans(story)
    return Example(
        (question, story),
        solution.answer,
        tuple(sentences[number] for number in solution.facts),
        {"kind": kind, "facts": solution.facts, "source": thing_spans(story)[solution.source]},
    )


def _answer(world: World, kind: str, asked: str, place: str = "") -> Solution | None:
    if kind == "one":
        return world.of_person(asked)
    return world.of_object(asked) if kind == "two" else world.of_object_before(asked, place)


def _write(random: Random, kind: str) -> Example:
    while True:
        events, world = _events(random)
        questions = _questions(world, kind)
        if questions:
            story = " ".join(event.sentence for event in events)
            return make_example(random.choice(questions), story, kind)


def _events(random: Random) -> tuple[list[Event], World]:
    persons = random.sample(PERSONS, random.randint(2, 3))
    objects = random.sample(OBJECTS, 2)
    world, events = World(), list[Event]()
    length = random.randint(*LENGTHS)
    while len(events) < length:
        event = _event(random, random.choice(persons), objects)
        if world.allows(event):
            world.happen(len(events), event)
            events.append(event)
    return events, world


def _event(random: Random, person: str, objects: Sequence[str]) -> Event:
    verb = random.choice((random.choice(GOING), random.choice((TAKING, LEAVING))))
    return Event(person, verb, random.choice(PLACES if verb in GOING else objects))


def _questions(world: World, kind: str) -> list[str]:
    if kind == "one":
        return [f"where is {person} now?" for person in world.at]
    if kind == "two":
        return [f"where is the {thing}?" for thing in world.trails]
    return [
        f"where was the {thing} before it reached the {place}?"
        for thing, trail in world.trails.items()
        for place, _ in trail[1:]
        if world.of_object_before(thing, place)
    ]
