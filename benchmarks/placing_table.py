"""The results of placing.py: a table for each model, the best rule at each cost, the answer."""

from collections.abc import Mapping

import numpy as np

Records = dict[str, list[tuple[int, int, float]]]  # by rule: gradients, probes, error
Summary = dict[str, tuple[float, float, float]]  # mean cost, mean error, 95th percentile
BUDGETS = (6, 9, 12, 15, 18, 24, 36, 48, 60)
PLACING = (
    "placed",
    "placed, by odds",
    "split",
    "tripled to",
    "extended to",
    "cosines to",
    "turned",
)
ADAPTIVE = (*PLACING, "Gauss, by odds")


def summed_up(records: Records, gradient: int) -> Summary:
    """The cost and the error of each rule."""
    found = {}
    for name, each in records.items():
        gradients, probes, off = np.array(each).T
        cost = float((gradient * gradients + probes).mean())
        found[name] = cost, float(off.mean()), float(np.quantile(off, 0.95))
    return found


def family(rule: str) -> str:
    """The kind of a rule, without its numbers."""
    kind = rule.split()[0]
    if " to " in rule:
        return f"{kind} to"
    return f"{kind}, by odds" if rule.endswith("by odds") else kind


def table(name: str, records: Records) -> None:
    print(f"\n{name}: {len(records['reference'])} sites of inputs\n")
    print("| rule | cost, a gradient 3 | a gradient 2 | mean | 95th percentile |")
    print("|---|---|---|---|---|")
    cheap = summed_up(records, 2)
    for rule, (cost, mean, high) in sorted(summed_up(records, 3).items(), key=lambda x: x[1]):
        print(f"| {rule} | {cost:.1f} | {cheap[rule][0]:.1f} | {mean:.2g} | {high:.2g} |")


def by_budget(found: Mapping[str, Records], gradient: int) -> None:
    """For each kind, the smallest error within a budget, mean and 95th percentile."""
    kinds = ("midpoint", "Gauss", *ADAPTIVE)
    print(f"\nSmallest mean / 95th percentile at a cost of at most; a gradient is {gradient}\n")
    print(f"| model | cost | {' | '.join(kinds)} |\n|---|---|{'---|' * len(kinds)}")
    for name, records in found.items():
        summary = summed_up(records, gradient)
        for budget in BUDGETS:
            cells = [_cell(summary, kind, budget) for kind in kinds]
            print(f"| {name} | {budget} | {' | '.join(cells)} |")


def _cell(summary: Summary, kind: str, budget: float) -> str:
    own = [each for rule, each in summary.items() if family(rule) == kind and each[0] <= budget]
    if not own:
        return "–"
    return f"{min(each[1] for each in own):.2g} / {min(each[2] for each in own):.2g}"


def answer(found: Mapping[str, Records], gradient: int) -> None:
    """For each adaptive kind, the rules that win on all models, or on how many they win."""
    summaries = [summed_up(records, gradient) for records in found.values()]
    print(f"\nA gradient is {gradient}:")
    placing = False
    for kind in ADAPTIVE:
        rules = [rule for rule in summaries[0] if family(rule) == kind]
        won = {rule: sum(_wins(rule, summary) for summary in summaries) for rule in rules}
        best = max(won.values())
        names = "; ".join(rule for rule in rules if won[rule] == len(summaries))
        print(
            f"- {kind}: wins on {best} of {len(summaries)} models at best; on all: {names or '–'}"
        )
        placing |= bool(names) and kind in PLACING
    verdict = "an adaptive placing wins" if placing else "no adaptive placing wins"
    print(f"Answer: at equal cost {verdict} on mean and 95th percentile on all models.")


def _wins(rule: str, summary: Summary) -> bool:
    """Whether a rule beats every fixed rule that costs no more, on mean and 95th percentile."""
    cost, mean, high = summary[rule]
    rivals = [
        each
        for name, each in summary.items()
        if family(name) not in (*ADAPTIVE, "reference") and each[0] <= cost
    ]
    return all(mean < each[1] and high < each[2] for each in rivals)
