"""Texts drawn by chance from populations whose every figure is known: what a verdict is held to.

Only some texts have anything to find. A population says how much these have, and which share of it
the weights, a control and a reference come upon.
"""

from functools import cache

import numpy as np

from attlas.auditing.verdict import verdict
from attlas.auditing.verdict.crossing import CONTROL, REFERENCE, WEIGHTS, Roles
from attlas.auditing.verdict.rules import RemovalTest, Rules, decide
from attlas.auditing.verdict.verdict import Tested
from attlas.mathematics.intervals import Estimate
from attlas.mathematics.standing import Locations

COUNTS = (18, 30, 100, 300)
CARRYING = (0.02, 0.05, 0.2, 1.0)  # shares of texts that have something to find
REMOVALS = ("delete", "mask")
NOISE = 0.01  # of a figure of one text: removal orders are drawn by chance


def _ones(random, count):
    return np.full(count, 0.5)


def _lognormal(random, count):
    return np.minimum(random.lognormal(-2, 1, count), 1)


def _exponential(random, count):
    return np.minimum(random.exponential(0.3, count), 1)


ROOMS = {
    "alike": _ones,
    "uniform": lambda random, count: random.random(count),
    "exponential": _exponential,
    "lognormal": _lognormal,
}
SHARES = {
    "beta": lambda random, count: random.beta(4, 2, count),
    "mostly all": lambda random, count: (random.random(count) < 0.9) * 1.0,
    "half": lambda random, count: (random.random(count) < 0.5) * 1.0,
    "normal": lambda random, count: np.clip(random.normal(0.6, 0.4, count), -1, 1),
    "reversed": lambda random, count: np.where(random.random(count) < 0.9, 1.0, -1.0),
}
POPULATIONS = (
    ("alike", "mostly all"),
    ("alike", "reversed"),
    ("uniform", "beta"),
    ("exponential", "normal"),
    ("exponential", "half"),
    ("lognormal", "mostly all"),
    ("lognormal", "normal"),
)


def draw_tested(kind, count, carrying, random, noise=NOISE):
    """The evidence of some texts of a population, as a verdict takes it."""
    room, share = kind
    has = random.random(count) < carrying
    base, found = ROOMS[room](random, count) * has, SHARES[share](random, count)
    evidence, directions = {}, {}
    for removal in REMOVALS:
        best = base * random.uniform(0.8, 1.0, count)
        shares = {
            WEIGHTS: found,
            CONTROL: np.clip(random.normal(0.3, 0.4, count), -1, 1),
            REFERENCE: np.clip(found + random.normal(0.05, 0.2, count), -1, 1),
        }
        methods = {n: each * best + noise * random.normal(size=count) for n, each in shares.items()}
        own = best + noise * random.normal(size=count)
        evidence[removal] = Locations(own, best * random.uniform(1, 3, count) + 2 * noise, methods)
        named = random.beta(3, 1, count)
        pull = best + 2 * noise
        directions[removal] = {WEIGHTS: named, "": (named + 0.5) / 2, "pull": pull}
    moved = np.where(random.random(count) < 0.9, random.beta(1, 4, count), 0.0) * has
    roles = Roles((WEIGHTS,), (CONTROL,), (REFERENCE,))
    return Tested(evidence, roles, moved=moved, directions=directions)


def figures_of(tested):
    """Every interval that a verdict uses, by its name and removal, and the word they give."""
    with_rules = verdict._test(tested.evidence, tested, Rules())
    found = {
        (name, removal): getattr(test, name)
        for removal, test in with_rules.items()
        for name in ("s", "less_control", "less_reference", "room", "carrying", "contrast")
    }
    found["use", ""] = verdict.attention_use(tested)
    for each in verdict._directions(tested, WEIGHTS):
        for name in ("highlighted", "all_tokens"):
            figure = getattr(each, name)
            found[name, each.removal] = Estimate(figure.value, figure.low, figure.high, 0)
    return found, decide(with_rules.values(), found["use", ""], Rules())


@cache
def true_figures(kind, carrying):
    """The figures of the whole population, by their definition, from very many of its texts."""
    tested = draw_tested(kind, 300_000, carrying, np.random.default_rng(0))
    true = {}
    for removal, own in tested.evidence.items():
        weights, control, reference = (own.methods[each] for each in (WEIGHTS, CONTROL, REFERENCE))
        gains = {
            "s": weights,
            "less_control": weights - control,
            "less_reference": weights - reference,
        }
        true |= {(name, removal): gain.sum() / own.best.sum() for name, gain in gains.items()}
        true["room", removal] = own.best.mean()
        true["carrying", removal] = (own.best >= Rules().least_room).mean()
        true["contrast", removal] = own.best.sum() / own.importance.sum()
        shares = tested.directions[removal]
        for name, share in (("highlighted", shares[WEIGHTS]), ("all_tokens", shares[""])):
            true[name, removal] = (share * shares["pull"]).sum() / shares["pull"].sum()
    rooms = np.maximum(np.mean([each.best for each in tested.evidence.values()], axis=0), 0)
    true["use", ""] = (tested.moved * rooms).sum() / rooms.sum()
    return true


def held(tested, truth):
    """Which of the intervals hold their figure, and whether the word is *too few texts*."""
    found, word = figures_of(tested)
    kept = {key: found[key].low <= value <= found[key].high for key, value in truth.items()}
    return kept, word == verdict.TOO_FEW


def words(drawn):
    """The verdicts on some data sets."""
    return [verdict.verdict(each).word for each in drawn]


def drawn_interval(random, low, high):
    """Any interval of a range, with its mean anywhere in it; often a narrow one."""
    middle, wide = random.uniform(low, high), random.choice([0.03, 0.2, 1.0])
    ends = np.sort(np.clip(middle + wide * random.uniform(-1, 1, 3), low, high)).tolist()
    return Estimate(ends[1], ends[0], ends[2], 100)


def drawn_removal_test(random):
    """Any figures under a removal, sense or not."""
    return RemovalTest(
        drawn_interval(random, -1, 1),
        None if random.random() < 0.2 else drawn_interval(random, -0.3, 1),
        None if random.random() < 0.2 else drawn_interval(random, -0.4, 0.3),
        drawn_interval(random, 0, 1),
        drawn_interval(random, 0, 1),
        drawn_interval(random, 0, 1),
        drawn_interval(random, 0, 0.2),
        random.uniform(5, 100),
    )
