"""The figures, the tables and the trials of a report in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.text import Text

from attlas.views.markup import MONO, QUIET, as_text
from attlas.views.units import ShownUnit, visible

Payload = Mapping[str, Any]
ARROWS = {"higher": "↑", "lower": "↓"}
MARKS = {"supported": "✓", "not supported": "✕", "partly": "◐", "too few texts": "?"}
FAMILIES = ("W", "V", "P", "reference", "control")
LETTERS = "W the weights  V with values or gradients  P propagation  R reference  C control"
SIGNS = "  ".join(f"{mark} {word}" for word, mark in MARKS.items())
MOST_NAMED = 4  # tokens of an example
MOST_BEST = 3  # methods in a short answer
MOST_FINDINGS = 3  # on the first screen


def figure_words(figure: Payload, digits: int = 2) -> str:
    """A figure with its interval and the number of its texts."""
    parts = [number(figure["value"], digits)]
    if figure["low"] is not None and figure["high"] is not None:
        parts.append(f"({number(figure['low'], digits)} to {number(figure['high'], digits)})")
    words = " ".join(parts)
    return words if figure["n"] is None else f"{words}, {text_count(figure['n'])}"


def facts(payload: Payload) -> str:
    """The model, the data, and the model's accuracy if it is known."""
    data = payload["data"]
    words = f"{visible(payload['model'])} on {visible(data['name'])} · {text_count(data['texts'])}"
    right = data["accuracy"]
    if right is None or right["value"] is None:
        return words
    shares = (f"{100 * right[name]:.1f}" for name in ("low", "high") if right[name] is not None)
    return f"{words} · right {100 * right['value']:.1f} % ({' to '.join(shares)})"


def short_answer(payload: Payload) -> tuple[str, str]:
    """The shortest answer, and the rest of it in everyday words."""
    verdict = payload["verdict"]
    if plain := verdict.get("plain"):
        first, _, rest = visible(plain).partition(". ")
        return first.removesuffix("."), rest
    lead = visible(verdict["sentence"]).partition(":")[0].rstrip(".")
    return "", f"{lead}."


def answers(payload: Payload) -> dict[str, str]:
    """The two answers in full, each with its heading."""
    verdict = payload["verdict"]
    return {
        "Where?": visible(verdict["sentence"]),
        "Which way?": visible(verdict["which_way"]),
    }


def best_methods(payload: Payload) -> str:
    """The methods that find most of what matters; empty if none was tried."""
    means = {
        method: _mean(row) for method, kind, row in standing_rows(payload) if kind != "control"
    }
    shown = [f"{visible(each)} {100 * s:.0f} %" for each, s in means.items() if s > float("-inf")]
    return f"Find most of what matters: {', '.join(shown[:MOST_BEST])}" if shown else ""


def first_example(payload: Payload) -> Payload | None:
    """The example of the first screen: a typical text, with what its tokens do."""
    return next((each for each in payload["examples"] if each["truth"]), None)


def pulls(example: Payload) -> list[float]:
    """How much each token matters; below zero if it speaks against the prediction."""
    both = zip(example["truth"]["importance"], example["truth"]["pull"], strict=True)
    return [(matters or 0.0) * (-1 if (pull or 0.0) < 0 else 1) for matters, pull in both]


def named_tokens(example: Payload, scores: Sequence[float], *, signed: bool) -> str:
    """The words with the largest scores, each the sum of its tokens'."""
    words = sorted(example_words(example, scores), key=lambda unit: -abs(unit.score))[:MOST_NAMED]
    shown = [f"{word.score:{'+' if signed else ''}.2f}".replace("-", "−") for word in words]
    return " · ".join(f"{word.text} {score}" for word, score in zip(words, shown, strict=True))


def example_words(example: Payload, scores: Sequence[float]) -> list[ShownUnit]:
    """The words of an example with the sums of their scores; `start` is None after a gap."""
    groups = example.get("words") or [[place] for place in range(len(scores))]
    found: list[ShownUnit] = []
    for places in groups:
        text = "".join(example["tokens"][place] for place in places)
        touching = 0 if found and not text[:1].isspace() else None
        score = sum(scores[place] for place in places)
        found.append(
            ShownUnit(
                visible(text.strip() or text), score, False, "text", touching, 0, tuple(places)
            )
        )
    return found


def example_facts(example: Payload) -> str:
    """What the text illustrates, and what the model says of it."""
    said = f"the model says {visible(example['label'])} ({number(example['probability'])})"
    label = example.get("true_label")
    known = f", the true label is {visible(label)}" if label else ""
    return f"{visible(example['point'])}: {said}{known}"


def licence_words(example: Payload) -> str:
    """Whether the map of the weights may be read, or what it finds; empty if nothing is known."""
    if not example["licence"]:
        s = example["truth"]["s"]
        return "" if s is None else f"The weights find {number(s)} of what matters here."
    word = visible(example["licence"]["word"])
    return f"Licence: {word}. {visible(example['licence']['why'])}"


def bound_rows(payload: Payload, bounds: Payload) -> list[tuple[str, Payload, float | None]]:
    """The figures of one removal: what each is about, the figure, and its threshold."""
    rules = payload["settings"].get("rules", {})
    rows = [("the weights find", bounds["s"], rules.get("floor"))]
    if bounds["less_control"]:
        control = visible(bounds["control"]).replace("other_text ", "another text's ", 1)
        rows.append((f"more than {control}", bounds["less_control"], 0.0))
    if bounds["less_reference"]:
        margin = rules.get("margin")
        least = None if margin is None else -margin
        rows.append((f"more than {visible(bounds['reference'])}", bounds["less_reference"], least))
    return rows


def evidence_words(payload: Payload) -> Iterator[str]:
    """What else the verdict rests on, one sentence each."""
    verdict, rules = payload["verdict"], payload["settings"].get("rules", {})
    if verdict["used"]:
        least = rules.get("least_use")
        asked = "" if least is None else f"; {least:g} is the least that counts as used"
        yield (
            "Is the attention used? Shuffled, it moves the answer by "
            f"{figure_words(verdict['used'])}{asked}."
        )
    yield (
        f"Chosen on one half of the texts and tested on the other, {100 * verdict['same_word']:.0f}"
        " % of the splits give this word."
    )
    for each in verdict["directions"]:
        yield (
            f"Which way ({visible(each['removal'])}): of what the weights highlight, "
            f"{figure_words(each['highlighted'])}, speak for the prediction; of all tokens, "
            f"{figure_words(each['all_tokens'])}."
        )


def grid_cells(payload: Payload) -> list[list[str]]:
    """The word for each floor (rows) and margin (columns), as signs; empty if there are none."""
    found = payload["verdict"]["grid"]
    if not found:
        return []
    margins = list(dict.fromkeys(each["margin"] for each in found))
    words = {(each["floor"], each["margin"]): each["word"] for each in found}
    floors = dict.fromkeys(each["floor"] for each in found)
    rows = [
        [f"{floor:g}", *(MARKS.get(words[floor, margin], "·") for margin in margins)]
        for floor in floors
    ]
    return [["floor / margin", *(f"{margin:g}" for margin in margins)], *rows]


def group_cells(payload: Payload) -> list[list[str]]:
    """s in each group of texts, and how many of them have nothing to find; empty if none."""
    found = payload["verdict"]["by_group"]
    if not found:
        return []
    removals = list(dict.fromkeys(each["removal"] for each in found))
    by_group: dict[str, dict[str, Payload]] = {}
    for each in found:
        by_group.setdefault(each["group"], {})[each["removal"]] = each
    rows = []
    for group, own in by_group.items():
        every = next(iter(own.values()))
        shown = [_group_figure(own.get(removal)) for removal in removals]
        rows.append([visible(group), str(every["texts"]), *shown])
    return [["texts", "how many", *map(visible, removals)], *rows]


def _group_figure(each: Payload | None) -> str:
    if each is None:
        return "–"
    figure = {**each["s"], "n": None}
    nothing = f", nothing to find in {each['without_room']}" if each["without_room"] else ""
    return f"{figure_words(figure)}{nothing}"


def columns_of(payload: Payload, removal: str, *, plausible: bool) -> list[int]:
    """The positions of the columns with this removal: those of plausibility, or all others."""
    return [
        place
        for place, column in enumerate(payload["table"]["columns"])
        if column["removal"] == removal and (column["kind"] == "plausibility") == plausible
    ]


def removals_of(payload: Payload) -> list[str]:
    """The removals in the order of the table; no removal comes last."""
    found = dict.fromkeys(column["removal"] for column in payload["table"]["columns"])
    return sorted(found, key=lambda removal: removal == "")


def rows_of(payload: Payload) -> list[Payload]:
    """The rows of the table by family, controls last."""
    return sorted(payload["table"]["rows"], key=lambda row: FAMILIES.index(row["family"]))


def standing_rows(payload: Payload) -> list[tuple[str, str, list[Payload]]]:
    """Each method with its family and its standing by removal, the highest mean first."""
    rows: dict[str, list[Payload]] = {}
    for each in payload["standings"]:
        rows.setdefault(each["method"], []).append(each)
    ordered = sorted(rows.values(), key=_mean, reverse=True)
    return [(row[0]["method"], row[0]["family"], row) for row in ordered]


def heading(column: Payload) -> str:
    """The measure of a column, with an arrow for which way is better."""
    return f"{ARROWS.get(column['better'], '')} {visible(column['measure'])}"


def cell_words(cell: Payload) -> str:
    """A figure without its interval; a star marks the best, a question mark an odd one."""
    if cell["figure"]["value"] is None:
        return "circular" if cell["note"].startswith("circular") else "–"
    star = "★ " if cell["best"] else ""
    odd = "?" if cell["note"] else ""
    return f"{star}{number(cell['figure']['value'])}{odd}"


def number(value: float | int | None, digits: int = 2) -> str:
    """A number with two decimals, or a dash if it is unknown."""
    return "–" if value is None else f"{value:z.{digits}f}".replace("-", "−")


def text_count(count: int) -> str:
    """A number of texts in words: `1 text`, `2 texts`."""
    return f"{count} text{'' if count == 1 else 's'}"


def trial_lines(payload: Payload) -> Iterator[Text]:
    """The trials in a terminal: name, finding, attention, figures, and the titles of the plots."""
    if payload["trials"]:
        yield from (Text(), Text("The attention on trial", style="bold"))
    for trial in payload["trials"]:
        yield from (Text(), Text(visible(trial["name"]), style="bold"))
        yield from trial_body(trial)


def trial_body(trial: Payload) -> Iterator[Text]:
    """What one trial found, which attention it is about, its figures, and where its plots are."""
    yield Text(visible(trial["sentence"]))
    yield Text(f"Which attention: {visible(trial['scope'])}", style="dim")
    for each in trial["figures"]:
        yield Text(f"  {visible(each['name'])}: {_trial_figure(each)}")
    if trial["plots"]:
        yield Text(_plot_words(trial), style="dim")


def trial_fragments(payload: Payload) -> Iterator[str]:
    """The trials as pieces of HTML."""
    for trial in payload["trials"]:
        yield f'<div style="margin-top:8px"><b>{as_text(trial["name"])}</b></div>'
        yield f"<div>{as_text(trial['sentence'])}</div>"
        yield f'<div style="{QUIET}">Which attention: {as_text(trial["scope"])}</div>'
        for each in trial["figures"]:
            words = as_text(f"{each['name']}: {_trial_figure(each)}")
            yield f'<div style="{MONO};font-size:12px">{words}</div>'
        if trial["plots"]:
            yield f'<div style="{QUIET}">{as_text(_plot_words(trial))}</div>'


def _trial_figure(each: Payload) -> str:
    known = [value for value in (each["figure"]["value"], each["ceiling"]) if value is not None]
    digits = 3 if known and max(map(abs, known)) < 0.1 else 2  # as on the page
    words, ceiling = figure_words(each["figure"], digits), each["ceiling"]
    return words if ceiling is None else f"{words}; at most {number(ceiling, digits)}"


def _plot_words(trial: Payload) -> str:
    titles = ", ".join(visible(plot["title"]) for plot in trial["plots"])
    return f"Drawn on the page: {titles}"


def _mean(standings: Sequence[Payload]) -> float:
    known = [each["figure"]["value"] for each in standings if each["figure"]["value"] is not None]
    return sum(known) / len(known) if known else float("-inf")
