"""Self-attention attribution: at which points of the path should the gradients be taken?

    ATTLAS_DATA=... python benchmarks/placing.py [--device cuda] [--inputs 100]
        [--models sentiment:sst2 /path/minilm-sst2:sst2 /path/minilm-mnli:mnli random:128]

For each input and site, the error of the map, |I - I*|₁ / |I*|₁, against 324 midpoints. Cost is in
forward passes of one copy: a gradient is three, or two if no weight needs one; all rules make the
pass without attention, so it does not count. Rules: fixed ones; `placed k by p`, one
gradient in each of k intervals in which the target moves equally far, by p equal steps of forward
passes; `split k`, midpoints of four intervals, then the one that differs most from its neighbours
is cut in three; `tripled to`, midpoints of 4, 12, 36, 108 steps until the estimated
error is below a tolerance, and two more such families, `extended to` and `cosines to`; `turned`,
seven points, and placed ones if those are not enough; `by odds`, shares that follow the log-odds of
the target (quadratures.py). An adaptive rule wins on a model if its mean and its 95th percentile
are below those of every fixed rule that costs no more.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from placing_table import Records, answer, by_budget, table
from quadratures import (
    FEW,
    FIXED,
    NESTED,
    Numbers,
    Odds,
    Rule,
    by_odds,
    gauss,
    midpoint,
    placed,
    polynomial,
    spread,
    straight,
)
from shapes import bert, one_question, texts_of
from torch import Tensor

import attlas
from attlas.models.asking.question import Question
from attlas.models.branching import variants
from attlas.models.branching.branches import Branch, Branched, run_branches
from attlas.models.encoding.target import Target

PROBES, PLACED, GAUSS = (8, 16, 24), (4, 6, 8, 12), (2, 3, 4, 5, 6, 8)
RECALL = "recall:recall"
TOLERANCES, FIRST = (0.01, 0.03), 4  # intervals to begin with
Result = tuple[str, int, int, float]  # rule, gradients, probes, error of the map


class LogOdds(Target):
    """A target of one choice that can also give its log-odds, which never saturate."""

    def score(self, logits: Tensor, of: str) -> Tensor:
        if of != "log-odds":
            return super().score(logits, of)
        ((place, choice),) = self.picks
        row = logits[..., place, :].float()
        others = torch.cat([row[..., :choice], row[..., choice + 1 :]], dim=-1)
        return row[..., choice] - others.logsumexp(dim=-1)


@dataclass(frozen=True, eq=False)
class Path:
    """One site on the path from no attention to all of it: places, log-odds, and their maps."""

    places: Numbers
    odds: Numbers
    odds_maps: Tensor  # [place, cell]: attention times the gradient of the log-odds
    maps: Tensor  # the same for the probability

    def index(self, places: Numbers) -> list[int]:
        return [int(number) for number in np.abs(self.places[:, None] - places).argmin(axis=0)]

    def total(self, rule: Rule) -> Tensor:
        return self.summed(self.maps, rule.places, rule.shares)

    def summed(self, maps: Tensor, places: Numbers, shares: Numbers) -> Tensor:
        return torch.as_tensor(shares).to(maps) @ maps[self.index(places)]

    def weighed(self, rule: Rule) -> Tensor:
        """The sum with shares by the log-odds; only Gauss points suit a polynomial."""
        index = self.index(rule.places)
        slopes = self.odds_maps[index].sum(dim=1).cpu().numpy()
        known = Odds(self.odds[index], slopes, (float(self.odds[0]), float(self.odds[-1])))
        basis = polynomial if rule.name.startswith("Gauss") else straight
        return self.summed(self.odds_maps, rule.places, by_odds(rule, known, basis))


def questions(name: str, count: int, device: str) -> Iterator[Question]:
    """One question for each text; `random:128` is one text of 128 tokens on random weights."""
    model, _, data = name.rpartition(":")
    if model == "random":
        subject = bert(device)
        yield one_question(subject, *texts_of(subject, [int(data)]))
        return
    subject = attlas.load(model, device=device)
    split = "dev" if data in ("sst2", "mnli") else None
    texts = [example.text for example in attlas.texts(data, split=split, count=count)]
    for question in subject.ask(texts):
        yield from (question.rows([row]) for row in range(len(question)))


def asked_by_odds(question: Question) -> Question:
    targets = (
        LogOdds(**{each.name: getattr(target, each.name) for each in fields(target)})
        for target in question.targets
    )
    return question.asking(targets)


def raised(question: Question, places: Sequence[Numbers], gradients: bool) -> list[Branched]:
    """Each site with its attention at its own places."""
    branches = [
        Branch(site, replace(variants.scaled(each.tolist()), fixed=()))  # no two passes are alike
        for site, each in zip(question.subject.sites, places, strict=True)
    ]
    count = max(map(len, places)) if gradients else 0
    each = tuple(tuple(float(n == m) for m in range(count)) for n in range(count))
    return run_branches(question, branches, "log-odds", sums=each)


def placed_rules(question: Question) -> list[list[Rule]]:
    """The rules of each site whose points come from forward passes."""
    at = np.unique(np.concatenate([np.arange(count + 1) / count for count in PROBES]))
    found = []
    for branched in raised(question, [at] * len(question.subject.sites), gradients=False):
        target = branched.scores[:, 0].double().sigmoid().cpu().numpy()
        steps = [np.searchsorted(at, np.arange(count + 1) / count - 1e-9) for count in PROBES]
        found.append([placed(target[each], count) for each in steps for count in PLACED])
    return found


def paths(question: Question, rules: Sequence[Sequence[Rule]], reference: int) -> Iterator[Path]:
    ends = np.array([0.0, 1.0])
    fine = midpoint(reference).places
    places = [
        np.unique(np.concatenate([ends, fine, *(rule.places for rule in each)]).round(9))
        for each in rules
    ]
    for branched, own in zip(raised(question, places, gradients=True), places, strict=True):
        assert branched.weights is not None and branched.gradients is not None
        maps = (branched.weights * branched.gradients[: len(own)]).flatten(1).double()
        odds = branched.scores[:, 0].double().cpu().numpy()
        yield Path(own, odds, maps, maps * torch.as_tensor(spread(odds)).to(maps)[:, None])


def errors(path: Path, rules: Sequence[Rule], reference: int) -> Iterator[Result]:
    """The error of every rule at one site."""
    exact = path.total(midpoint(reference))
    size = float(exact.abs().sum())

    def off(found: Tensor) -> float:
        return float((found - exact).abs().sum()) / size

    yield "reference", reference, 0, off(path.total(midpoint(reference // 3))) / 8
    for rule in rules:
        yield rule.name, len(rule.places), rule.probes, off(path.total(rule))
    weighed = [*(gauss(count) for count in GAUSS), *rules[len(FIXED) + len(FEW) :]]
    for rule in weighed:
        yield f"{rule.name}, by odds", len(rule.places), rule.probes, off(path.weighed(rule))
    for name, nested in NESTED.items():
        for tolerance in TOLERANCES:
            steps, found = refined(path, nested, tolerance)
            yield f"{name} to {tolerance}", steps, 0, off(found)
    for tolerance in TOLERANCES:
        gradients, probes, found = turned(path, rules, tolerance)
        yield f"turned at {tolerance}", gradients, probes, off(found)
    for count, found in split(path, reference):
        yield f"split {count}", count, 0, off(found)


def refined(path: Path, nested: Sequence[Rule], tolerance: float) -> tuple[int, Tensor]:
    """Try one rule after the other until the estimated error is below this share of the map."""
    now = path.total(nested[0])
    for rule in nested[1:]:
        before, now = now, path.total(rule)
        if (now - before).abs().sum() / 8 <= tolerance * now.abs().sum():
            break
    return len(rule.places), now


def turned(path: Path, rules: Sequence[Rule], tolerance: float) -> tuple[int, int, Tensor]:
    """Seven points that contain three Gauss points; if not enough, placed ones by odds."""
    seven = NESTED["extended"][:2]
    before, now = (path.total(rule) for rule in seven)
    spent = len(seven[1].places)
    if (now - before).abs().sum() / 8 <= tolerance * now.abs().sum():
        return spent, 0, now
    (rule,) = (rule for rule in rules if rule.name == "placed 12 by 8")
    return spent + len(rule.places), rule.probes, path.weighed(rule)


def split(path: Path, reference: int) -> Iterator[tuple[int, Tensor]]:
    """Cut in three the interval whose gradient differs most, by its length, from its neighbours."""
    places, lengths = list(midpoint(FIRST).places), [1 / FIRST] * FIRST
    while len(places) <= max(PLACED):
        maps = path.maps[path.index(np.array(places))]
        if len(places) in PLACED:
            yield len(places), torch.tensor(lengths).to(maps) @ maps
        apart = np.append(0, np.append((maps[1:] - maps[:-1]).abs().sum(dim=1).cpu().numpy(), 0))
        worth = np.maximum(apart[1:], apart[:-1]) * lengths
        worst = int(np.where(np.array(lengths) > 1.5 / reference, worth, -1).argmax())
        third = lengths[worst] / 3
        places[worst : worst + 1] = [places[worst] + move * third for move in (-1, 0, 1)]
        lengths[worst : worst + 1] = [third] * 3


def measure(name: str, count: int, device: str, reference: int) -> Records:
    """Every rule on every input and site of a model."""
    records: Records = defaultdict(list)
    start, fixed = time.perf_counter(), [*FIXED, *FEW]
    for number, plain in enumerate(questions(name, count, device)):
        question = asked_by_odds(plain)
        rules = [[*fixed, *own] for own in placed_rules(question)]
        for path, each in zip(paths(question, rules, reference), rules, strict=True):
            for rule, gradients, probes, error in errors(path, each, reference):
                records[rule].append((gradients, probes, error))
        if number % 10 == 0:
            print(f"{name}: {number + 1} inputs, {time.perf_counter() - start:.0f} s", flush=True)
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--inputs", type=int, default=100)
    parser.add_argument("--reference", type=int, default=324)
    parser.add_argument("--models", nargs="+", default=["sentiment:sst2", "facts:facts", RECALL])
    given = parser.parse_args()
    if given.reference not in (108, 324, 972):
        parser.error("the reference is 108, 324 or 972 midpoints, which contain the default's")
    found = {
        name: measure(name, given.inputs, given.device, given.reference) for name in given.models
    }
    for name, records in found.items():
        table(name, records)
    for gradient in (3, 2):
        by_budget(found, gradient)
        answer(found, gradient)


if __name__ == "__main__":
    main()
