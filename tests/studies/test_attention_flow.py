"""The study of attention flow: its rules on the published figures and on others."""

import numpy as np
import pytest

from attlas.data.generated import agreement
from attlas.studies.tables.flow_agreement import (
    PUBLISHED,
    agreement_curves,
    agreement_tables,
    claims_on_agreement,
    claims_on_sentiment,
)


def published(seeds=3):
    return {name: np.tile(np.array(each), (seeds, 1)) for name, each in PUBLISHED.items()}


def test_the_published_figures_are_reproduced():
    claims = claims_on_agreement(published())
    assert {claim.verdict for claim in claims} == {"reproduced"}
    for claim in claims:
        assert claim.difference == pytest.approx(0, abs=1e-3)


def test_layers_are_counted_as_those_of_maps():
    table, _ = agreement_tables(published())
    first, *_, last = [(row.name, row.published) for row in table.rows]
    assert first == ("raw, layer 0", 0.69) and last == ("flow, layer 5", 0.70)
    assert agreement_curves(published())[0]["x"] == [0, 1, 2, 3, 4, 5]


def test_rollout_that_is_no_better_than_raw_attention_is_not():
    found = published()
    for name in ("blank-out", "input gradient"):
        for reading in ("rollout", "flow"):
            found[f"{name}, {reading}"] = found[f"{name}, raw"] - 0.05
    verdicts = [claim.verdict for claim in claims_on_agreement(found)]
    assert verdicts == ["reproduced", *["not reproduced"] * 5]


def sentiment(raw, rollout):
    names = {"raw": raw, "rollout": rollout, "flow": rollout}
    found = {f"input gradient, {name}": [[0.0, value]] * 4 for name, value in names.items()}
    return [claim.verdict for claim in claims_on_sentiment([found])]


def test_small_correlations_on_sentiment():
    assert sentiment(0.09, 0.13) == ["reproduced", "reproduced"]
    assert sentiment(0.6, 0.5) == ["not reproduced", "not reproduced"]
    assert sentiment(None, 0.1)[1] == "not tested here"


def test_agreement_sentences_are_decided_by_their_marked_noun():
    made = agreement.generate(200, 3)
    assert {each.label for each in made} == set(agreement.LABELS)
    assert any(each.fields["between"] for each in made)
    for each in made:
        ((start, end),) = each.spans
        noun = each.text[start:end]
        is_singular = noun in agreement.NOUNS
        assert is_singular == (each.label == "singular")
        before = each.text[:start].split()
        assert before[0] == "the" and set(before[1:]) <= set(agreement.ADJECTIVES)
    assert made == agreement.generate(200, 3) != agreement.generate(200, 4)
