"""How much each head follows each pattern, on texts and on drawn tokens that are written twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.encoding.encode_input import encode_input
from attlas.models.encoding.inputs import Inputs, group_by_shape, stack
from attlas.models.encoding.request import Request
from attlas.models.tap.call import Call
from attlas.results import Site
from attlas.shapes import HeadTable, QueryMarks
from attlas.trials.reading.patterns import LOOKS, attention_to, breadth, evenly, wanted_keys
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import seed_for

BROAD, DRAWN = "broad", "induction, drawn"
PATTERNS = {
    **LOOKS,
    BROAD: "as many tokens as it sees",
    DRAWN: "what came after the same token before, where drawn tokens are written twice",
}
FEWEST, MOST = 3, 48  # tokens that are written twice

Looked = dict[str, tuple[Tensor, Tensor]]  # by pattern: the scores `[batch, head]`, and chance's


@dataclass(frozen=True, eq=False)
class PatternScores:
    """By pattern, the score of each head on each text, and that of a head that looks everywhere.

    Not a number where no row of the text could follow the pattern.
    """

    found: Mapping[str, HeadTable]
    chance: Mapping[str, HeadTable]

    def leader(self, pattern: str) -> int | None:
        """The head with the largest mean over texts, where any has one."""
        means = mean_over_texts(self.found[pattern])
        return None if np.isnan(means).all() else int(np.nanargmax(means))


def mean_over_texts(table: HeadTable) -> NDArray[np.float64]:
    """Of each head, the mean over the texts that say something of it."""
    known = np.isfinite(table)
    count = known.sum(axis=0)
    total = np.where(known, table, 0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def score_heads(questions: Sequence[Question], sites: Sequence[Site], seed: int) -> PatternScores:
    """Every head of these sites on every text, the texts in the order of the questions."""
    batches = [_on_texts(question, sites) for question in questions]
    tables = [
        {name: np.concatenate([each[name][k] for each in batches]) for name in batches[0]}
        for k in (0, 1)
    ]
    for table, drawn in zip(tables, _on_drawn(questions, sites, seed), strict=True):
        table[DRAWN] = drawn
    return PatternScores(*tables)


def whole_sites(question: Question, sites: Sequence[Site]) -> list[Site]:
    """The sites at which every row is read: by the prediction of this question, or by its own."""
    subject = question.subject
    if subject.predicts_next or (subject.task is not None and subject.task.by_position):
        return list(sites)
    rows = _paths(question)
    return [site for site in sites if bool(rows[site.name].all())]


def _paths(question: Question) -> dict[str, QueryMarks]:
    """Of each site, the rows that the prediction depends on."""
    return {each.site.name: each.rows for each in Scope("all").opened(question)}


def _on_texts(question: Question, sites: Sequence[Site]) -> dict[str, tuple[HeadTable, HeadTable]]:
    paths = _paths(question)

    def look(call: Call) -> Looked:
        return _look(call, question.inputs, paths[call.site.name], (*LOOKS, BROAD))

    held = fold_attention(question, look, sites).held
    return {name: _side_by_side([each[name] for each in held]) for name in (*LOOKS, BROAD)}


def _look(call: Call, inputs: Inputs, path: QueryMarks, patterns: Sequence[str]) -> Looked:
    """What each head scores in one attention, and what chance does.

    The rows that count are those of content tokens; where special ones alone are read, theirs.
    """
    stream = inputs.queries_and_keys(call.site.kind)[0]
    ids = inputs.arguments[stream.argument]
    marks = [tokens.special[stream.start : stream.stop] for tokens in inputs.tokens]
    special = torch.tensor(marks, device=ids.device)
    content = path & ~special
    rows = torch.where(content.any(dim=-1, keepdim=True), content, path)
    visible = call.visible
    both = (call.weights.float(), evenly(visible.expand_as(call.weights)))
    found: Looked = {}
    for name in patterns:
        if name == BROAD:
            one, other = (breadth(weights, visible, rows) for weights in both)
        else:
            wanted = wanted_keys(name, ids, special)
            one, other = (attention_to(weights, wanted, visible, rows) for weights in both)
        found[name] = (one, other)
    return found


def _on_drawn(
    questions: Sequence[Question], sites: Sequence[Site], seed: int
) -> tuple[HeadTable, HeadTable]:
    """Induction on each text's own tokens, in an order drawn for it, written twice.

    An encoder–decoder would have to write something to it, and has none.
    """
    subject = questions[0].subject
    count = sum(len(question) for question in questions)
    width = sum(site.heads for site in sites)
    found, chance = np.full((count, width), np.nan), np.full((count, width), np.nan)
    places, drawn = [], []
    rows = ((question, row) for question in questions for row in range(len(question)))
    for place, (question, row) in enumerate(rows):
        written = _written_twice(question, row, seed)
        if written and not subject.has_decoder:
            places.append(place)
            drawn.append(encode_input(subject, written, Request()))
    live = {site.name for site in whole_sites(questions[0], sites)}
    for group in group_by_shape(drawn, subject.rows_holding(drawn[0], sites) if drawn else 1):
        scores = _on_batch(subject, stack([drawn[i] for i in group]), sites, live)
        for table, values in zip((found, chance), scores, strict=True):
            table[[places[i] for i in group]] = values
    return found, chance


def _written_twice(question: Question, row: int, seed: int) -> list[int]:
    """The different tokens of a text in a drawn order, twice, between its own special tokens."""
    source = question.inputs.source
    ids = question.inputs.arguments[source.argument][row].tolist()
    special = question.inputs.tokens[row].special[source.start : source.stop]
    inside = [place for place, mark in enumerate(special) if not mark]
    before, after = ids[: inside[0]], ids[inside[-1] + 1 :]
    room = (question.subject.max_tokens - len(before) - len(after)) // 2
    random = np.random.default_rng(seed_for(seed, question.order[row], DRAWN))
    unique = sorted({ids[place] for place in inside})
    order = [unique[i] for i in random.permutation(len(unique))][: min(room, MOST)]
    return [*before, *order, *order, *after] if len(order) >= FEWEST else []


def _on_batch(
    subject: OpenModel, inputs: Inputs, sites: Sequence[Site], live: set[str]
) -> tuple[HeadTable, HeadTable]:
    held = []
    for call in subject.read(inputs):
        if call.site not in sites:
            continue
        path = torch.full(
            (len(inputs), call.weights.shape[2]), call.site.name in live, device=subject.device
        )
        held.append(_look(call, inputs, path, ("induction",))["induction"])
    return _side_by_side(held)


def _side_by_side(held: Sequence[tuple[Tensor, Tensor]]) -> tuple[HeadTable, HeadTable]:
    """The heads of all sites in one table, of the scores and of chance."""
    one, other = (
        torch.cat(list(each), dim=1).double().cpu().numpy() for each in zip(*held, strict=True)
    )
    return one, other
