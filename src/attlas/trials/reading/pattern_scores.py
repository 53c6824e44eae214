"""How much each head follows each pattern, on texts and on random tokens that are repeated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.mathematics.divergences import entropy
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.encoding.encode_input import encode_input
from attlas.models.encoding.inputs import Inputs, group_by_shape, stack
from attlas.models.encoding.request import Request
from attlas.models.tap.call import Call
from attlas.results import Site
from attlas.shapes import (
    Attention,
    HeadMeans,
    HeadTable,
    QueryMarks,
    TokenIds,
    TokenKinds,
    Visible,
    WantedKeys,
)
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import seed_for

LOOKS = {
    "previous": "the previous token",
    "next": "the next token",
    "same": "the token itself",
    "first": "the first token",
    "separator": "special tokens",
    "induction": "the token that followed an earlier copy of this one",
}
BROAD, DRAWN = "broad", "induction, drawn"
PATTERNS = {
    **LOOKS,
    BROAD: "as many tokens as it sees",
    DRAWN: "the token that followed an earlier copy, in random tokens that are repeated",
}
FEWEST, MOST = 3, 48  # random tokens that are repeated

Looked = dict[str, tuple[Tensor, Tensor]]  # by pattern: scores `[batch, head]`, and by chance


@dataclass(frozen=True, eq=False)
class PatternScores:
    """By pattern, the score of each head on each text, and that of a uniform head.

    NaN if no row of the text can follow the pattern.
    """

    scores: Mapping[str, HeadTable]
    chance: Mapping[str, HeadTable]

    def leader(self, pattern: str) -> int | None:
        """The head with the largest mean over texts; None if all are NaN."""
        means = mean_over_texts(self.scores[pattern])
        return None if np.isnan(means).all() else int(np.nanargmax(means))


def mean_over_texts(table: HeadTable) -> NDArray[np.float64]:
    """The mean of each head over texts, without NaN."""
    known = np.isfinite(table)
    count = known.sum(axis=0)
    total = np.where(known, table, 0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def score_heads(questions: Sequence[Question], sites: Sequence[Site], seed: int) -> PatternScores:
    """Score every head of these sites on every text, in the order of the questions."""
    batches = [_on_texts(question, sites) for question in questions]
    tables = [
        {name: np.concatenate([each[name][k] for each in batches]) for name in batches[0]}
        for k in (0, 1)
    ]
    for table, drawn in zip(tables, _on_drawn(questions, sites, seed), strict=True):
        table[DRAWN] = drawn
    return PatternScores(*tables)


def whole_sites(question: Question, sites: Sequence[Site]) -> list[Site]:
    """The sites at which every row counts: the prediction depends on it, or it has its own."""
    subject = question.subject
    if subject.predicts_next or (subject.task is not None and subject.task.by_position):
        return list(sites)
    rows = _paths(question)
    return [site for site in sites if bool(rows[site.name].all())]


def _paths(question: Question) -> dict[str, QueryMarks]:
    """The rows of each site that the prediction depends on."""
    return {each.site.name: each.rows for each in Scope("all").open_sites(question)}


def _on_texts(question: Question, sites: Sequence[Site]) -> dict[str, tuple[HeadTable, HeadTable]]:
    paths = _paths(question)

    def look(call: Call) -> Looked:
        return _look(call, question.inputs, paths[call.site.name], (*LOOKS, BROAD))

    held = fold_attention(question, look, sites).held
    return {name: _side_by_side([each[name] for each in held]) for name in (*LOOKS, BROAD)}


def _look(call: Call, inputs: Inputs, path: QueryMarks, patterns: Sequence[str]) -> Looked:
    """The scores of each head in one attention, and those by chance.

    The rows of content tokens count; if only special tokens are read, theirs.
    """
    stream = inputs.queries_and_keys(call.site.kind)[0]
    ids = inputs.arguments[stream.argument]
    marks = [tokens.special[stream.start : stream.stop] for tokens in inputs.tokens]
    special = torch.tensor(marks, device=ids.device)
    content = path & ~special
    rows = torch.where(content.any(dim=-1, keepdim=True), content, path)
    visible = call.visible
    both = (call.weights.float(), uniform_attention(visible.expand_as(call.weights)))
    found: Looked = {}
    for name in patterns:
        if name == BROAD:
            one, other = (breadth(weights, visible, rows) for weights in both)
        else:
            keys = pattern_keys(name, ids, special)
            one, other = (attention_to(weights, keys, visible, rows) for weights in both)
        found[name] = (one, other)
    return found


def _on_drawn(
    questions: Sequence[Question], sites: Sequence[Site], seed: int
) -> tuple[HeadTable, HeadTable]:
    """Induction on the tokens of each text, in a random order and repeated.

    Encoder–decoders are left out: they would need an output for such an input.
    """
    subject = questions[0].subject
    count = sum(len(question) for question in questions)
    width = sum(site.heads for site in sites)
    found, chance = np.full((count, width), np.nan), np.full((count, width), np.nan)
    places, drawn = [], []
    rows = ((question, row) for question in questions for row in range(len(question)))
    for place, (question, row) in enumerate(rows):
        repeated = _repeated(question, row, seed)
        if repeated and not subject.has_decoder:
            places.append(place)
            drawn.append(encode_input(subject, repeated, Request()))
    live = {site.name for site in whole_sites(questions[0], sites)}
    for group in group_by_shape(drawn, subject.rows_holding(drawn[0], sites) if drawn else 1):
        scores = _on_batch(subject, stack([drawn[i] for i in group]), sites, live)
        for table, values in zip((found, chance), scores, strict=True):
            table[[places[i] for i in group]] = values
    return found, chance


def _repeated(question: Question, row: int, seed: int) -> list[int]:
    """The distinct tokens of a text in a random order, twice, between its special tokens."""
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
    """The heads of all sites in one table, for the scores and for chance."""
    one, other = (
        torch.cat(list(each), dim=1).double().cpu().numpy() for each in zip(*held, strict=True)
    )
    return one, other


def pattern_keys(pattern: str, ids: TokenIds, special: TokenKinds) -> WantedKeys:
    """The keys that each row attends to by a pattern of LOOKS; a row may have none.

    Only rows of content tokens have neighbours, themselves and earlier copies as keys.
    """
    places = torch.arange(ids.shape[-1], device=ids.device)
    apart = places - places[:, None]  # how far a key is to the right of a query
    content = ~special
    steps = {"previous": -1, "same": 0, "next": 1}
    if pattern in steps:
        return content[:, :, None] & (apart == steps[pattern])
    if pattern == "first":
        return ((places == 0) & (apart != 0)).expand(len(ids), -1, -1)
    if pattern == "separator":
        return special[:, None] & (apart != 0)
    came_before = ids.roll(1, dims=-1)[:, None] == ids[:, :, None]
    known = content[:, :, None] & (content & content.roll(1, dims=-1))[:, None]
    return came_before & known & (places > 0) & (apart < 0)


def attention_to(
    weights: Attention, keys: WantedKeys, visible: Visible, rows: QueryMarks
) -> HeadMeans:
    """The attention of each head to these keys, a mean over the rows that see one.

    NaN if no row does.
    """
    seen = keys[:, None] & visible & rows[:, None, :, None]
    return _mean((weights * seen).sum(dim=-1), seen.any(dim=-1))


def breadth(weights: Attention, visible: Visible, rows: QueryMarks) -> HeadMeans:
    """Over how many keys each head spreads, from 0 for one key to 1 for all that a row sees.

    Their number is the exponential of the entropy. Rows that see only one key do not count.
    """
    counts = visible.sum(dim=-1)
    whole = weights.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)
    others = entropy(weights / whole).exp() - 1
    return _mean(others / (counts - 1).clamp_min(1), (counts > 1) & rows[:, None])


def uniform_attention(visible: Visible) -> Attention:
    """Uniform attention over the visible keys."""
    return visible / visible.sum(dim=-1, keepdim=True).clamp_min(1)


def _mean(values: Tensor, counted: Tensor) -> HeadMeans:
    """The mean over counted rows, from `[batch, head, query]`."""
    marks = counted.expand_as(values)
    total, count = (values * marks).sum(dim=-1), marks.sum(dim=-1)
    return torch.where(count > 0, total / count.clamp_min(1), torch.full_like(total, nan))
