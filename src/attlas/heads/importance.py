"""The verb `head_importance`: how much each head matters for the gold label, over a data set."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from attlas.data import read_examples
from attlas.engine import Engine, engine_of
from attlas.engine.pool import pool_of
from attlas.engine.worker import Work
from attlas.errors import AttlasError, ModelError, UnknownNameError
from attlas.explaining.method_call import MethodCall, origin
from attlas.explaining.score_parts import ScoreParts
from attlas.explaining.score_places import check_out
from attlas.heads.labelled_questions import (
    LabelledQuestions,
    LabelledText,
    ask_about_labels,
    ask_labelled,
)
from attlas.heads.rankings import RANKINGS, Ranking
from attlas.mathematics.intervals import DRAWS, LEVEL
from attlas.methods import METHODS
from attlas.models.asking.memory import in_fitting_batches, telling_shortages
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.facts.fingerprint import identity
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.results import Origin
from attlas.results.head_importance import HeadImportance
from attlas.shapes import HeadDraws, HeadScores, HeadTable
from attlas.verbs import verb
from attlas.version import __version__

VERB = "head_importance"
PIECE = {"cpu": 32, "cuda": 512}  # texts of one length that are worked on together
# Of a file of scores: a row for each text, those of one length together.
SCHEMA = pa.schema({"text": pa.string(), "label": pa.string(), "scores": pa.list_(pa.float64())})


@verb("ranking heads")
@telling_shortages
def head_importance(
    subject: Subject,
    data: Any,
    by: str = "attattr",
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
    count: int | None = None,
    truncate: bool = False,
    out: str | os.PathLike[str] | None = None,
    engine: str | Engine = "local",
    watch: Watch = lambda step: None,
    **options: Any,
) -> HeadImportance:
    """Measure how much each head matters for the gold labels of these texts.

    `data` and the arguments from `text` to `count` are those of `read_examples`; every text needs a
    label. `by` is the name of a ranking (`attlas.list_rankings()`), and `options` are its own:
    `steps` of attattr, `seed` of random. `out` is a Parquet file for the scores of every head in
    each text; stopped work goes on from its parts. `engine` is who does the work: "local", "ray",
    or an `attlas.Engine`.
    """
    workers = engine_of(engine)
    check_subject(subject, VERB)
    if out is not None:
        check_out(out)
    chosen = RANKINGS[by]
    read = read_examples(
        data, text=text, pair=pair, label=label, spans=spans, split=split, count=count
    )
    with torch.inference_mode(False):
        asked = ask_about_labels(subject, read.labelled(VERB), truncate=truncate)
        scoring = partial(
            score_in_pieces, truncate=truncate, engine=workers, out=out, texts=read.fingerprint
        )
        return rank(asked, chosen, options, watch, scoring)


def rank(
    asked: LabelledQuestions,
    chosen: Ranking,
    options: Mapping[str, Any],
    watch: Watch,
    scoring: Callable[..., HeadTable] | None = None,
) -> HeadImportance:
    """The importance of every head by one ranking."""
    for name in options:
        if name not in chosen.options:
            raise UnknownNameError(f"option of {chosen.name}", name, chosen.options)
    used = {**chosen.options, **options}
    values = (scoring or score_each)(asked, chosen, used, watch)
    sites = asked.subject.sites
    if not np.isfinite(values).all():
        raise ModelError(
            f"{chosen.name} gave scores that are not finite for {asked.subject.name}; try float32"
        )
    means = _means(values)
    final = means if chosen.finish is None else chosen.finish(means, sites)
    low, high = np.quantile(final[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    made = ranking_origin(asked.subject, chosen, used)
    return HeadImportance(sites, final[0], low, high, len(asked), made, asked.notes())


def score_each(
    asked: LabelledQuestions, chosen: Ranking, options: Mapping[str, Any], watch: Watch
) -> HeadTable:
    """The score of every head in each text."""
    tables: list[HeadTable] = []
    for question, _ in _pieces(asked):
        watch(Step(f"ranking heads by {chosen.name}", sum(map(len, tables)), len(asked)))
        tables.append(_score(question, chosen, options))
    return np.concatenate(tables)


def score_in_pieces(
    asked: LabelledQuestions,
    chosen: Ranking,
    options: Mapping[str, Any],
    watch: Watch,
    *,
    truncate: bool,
    engine: Engine,
    out: str | os.PathLike[str] | None,
    texts: str,
) -> HeadTable:
    """The same, done by workers if the engine has some, and kept in a file if there is one."""
    settings = {
        **{"attlas": __version__, "model": asked.subject.name, **identity(asked.subject)},
        **{"ranking": chosen.name, "options": options, "truncate": truncate, "texts": texts},
        "piece": _size(asked.subject),
    }
    with nullcontext() if out is None else ScoreParts(out, settings) as parts:
        if parts is not None and parts.finished() is not None:
            return _read(parts.whole())
        kept = [None if parts is None else parts.table(n) for n in range(len(_pieces(asked)))]
        tables = {number: _read(table) for number, table in enumerate(kept) if table is not None}
        work = RankWork(chosen.name, options, truncate)
        for number, table in _rest(asked, work, engine, tables, watch):
            tables[number] = table
            if parts is not None:
                parts.write(number, _table(_pieces(asked)[number][1], table), {})
        if parts is not None:
            parts.join(len(tables), SCHEMA, {"ranking": chosen.name})
        return np.concatenate([tables[number] for number in range(len(tables))])


@dataclass(frozen=True)
class RankWork(Work):
    """What workers do for a ranking: a piece is some texts of one length, with their labels."""

    ranking: str
    options: Mapping[str, Any]
    truncate: bool

    def begin(self, subject: Subject | None) -> Callable[[Sequence[LabelledText]], HeadTable]:
        """Rank the heads of this model from now on."""
        assert subject is not None

        @telling_shortages
        def score(labelled: Sequence[LabelledText]) -> HeadTable:
            ((question, rows),) = ask_labelled(subject, labelled, self.truncate)
            assert rows == tuple(labelled)
            return _score(question, RANKINGS[self.ranking], self.options)

        return score


def _rest(
    asked: LabelledQuestions,
    work: RankWork,
    engine: Engine,
    tables: Mapping[int, HeadTable],
    watch: Watch,
) -> Iterator[tuple[int, HeadTable]]:
    """The scores of each piece that has none yet, by its number."""
    pieces = _pieces(asked)
    left = [number for number in range(len(pieces)) if number not in tables]

    def tell(who: str = "") -> None:
        done = sum(map(len, tables.values()))
        watch(Step(f"ranking heads by {work.ranking}{who}", done, len(asked)))

    if engine.is_alone or not left:
        for number in left:
            tell()
            yield number, _score(pieces[number][0], RANKINGS[work.ranking], work.options)
        return
    tell(": joining the cluster")
    with pool_of(engine, work, asked.subject) as pool:
        sent = ((str(number), pieces[number][1]) for number in left)
        for name, found in pool.results(sent, lambda: tell(f"; {pool.state()}")):
            if isinstance(found, AttlasError):
                raise found
            yield int(name), found


def _score(question: Question, chosen: Ranking, options: Mapping[str, Any]) -> HeadTable:
    """The score of every head in each row of a question."""
    subject = question.subject
    too_large = f"one text does not fit on {subject.device}: load it in half precision"
    rows: list[HeadScores] = []
    for batch in question.batches_holding(subject.sites):
        score = partial(_score_rows, batch, chosen, options)
        rows += in_fitting_batches(range(len(batch)), score, too_large)
    table: HeadTable = torch.cat([each.detach().double().cpu() for each in rows]).numpy()
    return table


def _score_rows(
    batch: Question, chosen: Ranking, options: Mapping[str, Any], rows: Sequence[int]
) -> HeadScores:
    return chosen.score_heads(batch.rows(rows), **options)


def _size(subject: Subject) -> int:
    return PIECE.get(subject.device.type, PIECE["cpu"])


def _pieces(asked: LabelledQuestions) -> list[tuple[Question, tuple[LabelledText, ...]]]:
    """The questions in pieces, each with the texts that are its rows."""
    size = _size(asked.subject)
    return [
        (question.rows(range(start, min(start + size, len(question)))), rows[start : start + size])
        for question, rows in zip(asked.questions, asked.labelled, strict=True)
        for start in range(0, len(question), size)
    ]


def _table(rows: Sequence[LabelledText], scores: HeadTable) -> pa.Table:
    texts = [text if isinstance(text, str) else str(text) for text, _ in rows]
    labels = [str(label) for _, label in rows]
    return pa.table([texts, labels, scores.tolist()], schema=SCHEMA)


def _read(table: pa.Table) -> HeadTable:
    return np.array(table["scores"].to_pylist(), dtype=np.float64)


def _means(values: HeadTable, seed: int = 0) -> HeadDraws:
    """The mean over all examples, followed by means over resampled examples."""
    count = len(values)
    drawn = np.random.default_rng(seed).multinomial(count, [1 / count] * count, size=DRAWS)
    return np.concatenate([values.mean(axis=0, keepdims=True), drawn @ values / count])


def ranking_origin(subject: Subject, chosen: Ranking, options: Mapping[str, Any]) -> Origin:
    """How a ranking was made: everything that is needed to compute it again."""
    made = origin(MethodCall(METHODS["attattr"], Request(), {}), subject, {}, VERB)
    return replace(
        made,
        method=chosen.name,
        signed=chosen.name == "accuracy_difference",
        paper=chosen.paper,
        reading=chosen.reading,
        options=options,
        asked={},
    )
