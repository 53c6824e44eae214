"""The study `relations`: which heads follow which syntactic relation.

Clark, Khandelwal, Levy and Manning, "What Does BERT Look At? An Analysis of BERT's Attention",
BlackboxNLP 2019.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import attlas.data.sets
from attlas.data.files.conllu import Sentence, read_conllu
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import (
    Findings,
    Rule,
    at_least,
    at_most,
    compared,
    decided,
    over_seeds,
    untested,
)
from attlas.studies.support.run import Run
from attlas.studies.support.study import study
from attlas.trials.reading.relations import follow_relations, head_in_words

SOURCE = "Clark et al. 2019"
SAMPLE = "syntax.conllu"  # the sentences that come with Attlas
ANY = "any"  # stands for every relation but that of the root
NAMED = {  # relations that the paper names, and what they are called there
    "det": "determiners of nouns",
    "obj": "direct objects of verbs",
    "case": "objects of prepositions",
    "nmod": "objects of possessive pronouns",
}
HIGH = 0.75  # the accuracy that the paper calls high
DIFFERS = (
    "The model is the one named in the settings, not BERT-base.",
    "The sentences are the user's, or a sample written from templates for this project; the paper "
    "takes the Wall Street Journal.",
    "Relations are those of Universal Dependencies, where a preposition hangs from its noun (case) "
    "and a possessive is an nmod; the paper takes Stanford Dependencies.",
    "Head, direction and distance are chosen on half of the sentences and tested on the rest, for "
    "each seed on another half; the paper chooses and tests on the same.",
)


@study(
    about="which heads follow which syntactic relation better than a fixed distance",
    question="Do single heads follow syntactic relations?",
    paper="Clark et al. 2019, arXiv:1906.04341",
    quick={"seeds": 2, "count": 100},
    takes=(3, 291),
)
def relations(
    run: Run,
    *,
    model: str = "sentiment",
    conllu: str = "",
    count: int | None = None,
    seeds: int = 5,
) -> Findings:
    """Guess the syntactic head of each word by the attention of every head.

    Args:
        model: The model: a built-in name or a folder.
        conllu: A file with sentences in CoNLL-U; without one, the sample that comes with Attlas.
        count: How many of its sentences; all if not given.
        seeds: How many ways to divide the sentences into those chosen on and those tested on.
    """
    sentences = read_conllu(conllu or _sample())[:count]
    found = [
        run.kept(f"split {seed}", partial(_follow, run, model, sentences, seed))
        for seed in range(seeds)
    ]
    return Findings(
        claims=tuple(claims_on(found)),
        differs=DIFFERS,
        tables=tuple(_tables(found)),
        plots=tuple(_plots(found)),
        seeds=tuple(range(seeds)),
        notes=(f"{len(sentences)} sentences from {conllu or SAMPLE}.",),
        details={"splits": found},
    )


def _sample() -> Path:
    return Path(attlas.data.sets.__path__[0]) / SAMPLE


def _follow(run: Run, model: str, sentences: Sequence[Sentence], seed: int) -> dict[str, Any]:
    subject = load(model, device=run.device)
    return follow_all(subject, sentences, seed)


def follow_all(subject: Subject, sentences: Sequence[Sentence], seed: int) -> dict[str, Any]:
    """The best head for each relation, by name, and for all relations at once."""
    sites = [site for site in subject.sites if site.kind in ("encoder", "decoder")]
    every = [replace(each, relations=tuple(map(_any, each.relations))) for each in sentences]
    found = {each.relation: each for each in follow_relations(subject, sites, sentences, seed)}
    overall = {each.relation: each for each in follow_relations(subject, sites, every, seed)}
    return {name: each.to_dict() for name, each in {**found, **overall}.items()}


def _any(relation: str) -> str:
    return relation if relation == "root" else ANY


def over_splits(found: Sequence[Mapping[str, Any]], relation: str, field: str) -> Figure:
    """The mean of a figure of a relation over the splits that have it."""
    return over_seeds([each[relation][field] for each in found if relation in each])


def names_in(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The relations that some split has, without the one for all."""
    return sorted({name for each in found for name in each} - {ANY})


def claims_on(found: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """The claims of the paper, decided on the splits."""
    names = names_in(found)
    beyond = [
        sum(bool(each[name]["beyond"]) for name in names if name in each) / len(names)
        for each in found
    ]
    overall = over_splits(found, ANY, "gain")
    half = at_least(0.5)
    rule = Rule(f"the share of relations, {half.words}", half.judge)
    return [
        decided(
            "For many relations there is a head that follows it better than a fixed distance",
            f"{SOURCE}, table of heads by relation",
            rule,
            over_seeds(beyond),
            over="splits",
            found="The figure is the share of relations whose head is better beyond doubt: "
            f"{len(names)} relations were tested.",
        ),
        *(_named(found, name) for name in NAMED),
        decided(
            "No single head does well at syntax overall",
            f"{SOURCE}, in words",
            at_most(0.15),
            overall,
            over="splits",
            found="The figure is how much the best single head gains over the best fixed distance "
            "on all relations.",
        ),
    ]


def _named(found: Sequence[Mapping[str, Any]], name: str) -> Claim:
    said = f"A head finds the {NAMED[name]} with high accuracy ({name})"
    if name not in names_in(found):
        return untested(said, f"{SOURCE}, introduction", "too few words have this relation")
    heads = sorted({head_in_words(each[name]["head"]) for each in found if name in each})
    return decided(
        said,
        f"{SOURCE}, introduction: above 75 %",
        at_least(HIGH),
        over_splits(found, name, "accuracy"),
        published=HIGH,
        over="splits",
        found=f"By {', '.join(heads)}; a fixed distance has "
        f"{over_splits(found, name, 'offset_accuracy').value:.2f}.",
    )


def _tables(found: Sequence[Mapping[str, Any]]) -> list[ComparedTable]:
    names = [*names_in(found), ANY]
    made = []
    for title, field in (
        ("Accuracy of the best head", "accuracy"),
        ("Accuracy of the best fixed distance", "offset_accuracy"),
    ):
        ours = {name: over_splits(found, name, field) for name in names}
        reading = "The share of words whose syntactic head is guessed right, on other sentences."
        made.append(compared(title, reading, ours, {}, over="splits"))
    return made


def _plots(found: Sequence[Mapping[str, Any]]) -> list[plots.Plot]:
    names = names_in(found)
    gains = {name: over_splits(found, name, "gain") for name in names}
    first = found[0]
    rows = [
        [
            name,
            head_in_words(each["head"]),
            each["direction"],
            each["accuracy"],
            each["offset_accuracy"],
        ]
        for name, each in first.items()
    ]
    return [
        plots.bars(
            "What the best head gains over the best fixed distance",
            {name: each.value for name, each in gains.items()},
            intervals={name: (each.low, each.high) for name, each in gains.items()},
            x_label="gain in accuracy",
            reading="Above 0: a head that knows more than how far apart such words stand.",
        ),
        plots.table(
            "The heads, in the first split",
            ("relation", "head", "read", "right", "right by distance"),
            rows,
            reading="Which head follows which relation.",
        ),
    ]
