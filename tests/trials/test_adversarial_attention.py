import numpy as np
import pytest
import torch
from known_models import copies_attended, ignores_attention
from scipy.optimize import brentq
from scipy.spatial.distance import jensenshannon
from subjects import TEXTS, ask, subject

from attlas.errors import UsageError
from attlas.models.asking.scores import run_logits
from attlas.models.tap.edits import replace
from attlas.trials.adversarial_attention import DISTANCE, SHARE, adversarial_attention, at
from attlas.trials.searching.leeway import largest_divergence
from attlas.trials.searching.search import Search, SearchPlan
from attlas.trials.support.scope import Scope

FEW = SearchPlan(candidates=2, steps=8, rate=0.2)


def by_scipy(p, q):
    return jensenshannon(p, q, axis=-1) ** 2


def test_attention_that_nothing_reads_goes_as_far_as_there_is():
    questions = ignores_attention().ask(["good bad fine fine bad", "bad good fine"])
    found = adversarial_attention(questions, candidates=2, steps=30)
    assert found.figures[SHARE].min() >= 0.99
    assert "100% of the largest possible distance" in found.sentence


def test_the_steps_alone_go_nearly_as_far():
    (question,) = ignores_attention().ask(["good bad fine fine bad"])
    search = Search(question, Scope(), SearchPlan(candidates=5, steps=50, rate=0.4))
    search._optimise([search._first(each, 0) for each in search.leeways])
    assert (search.distance / largest_divergence(search.leeways)).min() >= 0.95


def test_the_farthest_there_is_by_trying_every_corner():
    question = ask("sequence classification")
    search = Search(question, Scope(), FEW)
    (given,) = search.leeways
    own = given.own[0, :, 0].double().numpy()
    free = given.free[0, 0, 0].numpy()
    corners = np.eye(len(free))[free]
    best = [max(by_scipy(row, corner) for corner in corners) for row in own]
    assert np.isclose(np.mean(best), float(largest_divergence(search.leeways)), atol=1e-5)


def test_where_attention_decides_it_goes_as_far_as_the_output_lets_it():
    """Of two words the marked one has all weight, and one of the heads is read by nothing."""
    found = adversarial_attention(copies_attended().ask(["good BAD"]), candidates=3, steps=60)

    def off(moved, tolerance):
        def chance(score):
            return 1 / (1 + np.exp(-2 * score))

        return abs(chance(-4 + 8 * moved) - chance(-4)) - tolerance

    for name, tolerance in ((DISTANCE, 0.01), (at(0.05, DISTANCE), 0.05)):
        moved = brentq(off, 0, 1, args=(tolerance,))
        used = by_scipy([0, 1], [moved, 1 - moved])
        most = (used + np.log(2)) / 2
        assert 0.98 * most <= found.figures[name][0] <= most + 1e-5


@pytest.mark.parametrize("task", ["sequence classification", "causal lm", "sequence to sequence"])
@pytest.mark.parametrize("scope", [Scope(), Scope("layer", 0), Scope("all"), Scope(specials=True)])
def test_what_is_found_keeps_the_output_and_holds_what_is_held(task, scope):
    question = ask(task)
    search = Search(question, scope, FEW)
    found = search.run(seed=1)
    assert (found.distance > 0).all()
    for number, tolerance in enumerate(FEW.tolerances):
        edits, apart = [], []
        for given, shares in zip(found.leeways, found.shares, strict=True):
            own, new = given.whole[0], given.rebuilt(shares[number : number + 1])[0]
            assert new.sum(-1).numpy() == pytest.approx(own.sum(-1).numpy(), abs=1e-5)
            assert (new >= 0).all()
            fixed = torch.ones_like(own, dtype=torch.bool)
            fixed[:, given.rows] = ~given.free[0]
            assert torch.equal(new[fixed], own[fixed])
            edits.append(replace(new[None]).at(kind=given.site.kind, layer=given.site.layer))
            counted = given.free[0].any(-1)
            pair = (shares[number, 0][counted], given.own[0][counted])
            apart += by_scipy(*(each.double().numpy() for each in pair)).tolist()
        place, _ = question.targets[0].picks[0]
        with torch.no_grad():
            with question.subject.tap(edits):
                moved = run_logits(question)[0, place].double().softmax(-1)
            clean = run_logits(question)[0, place].double().softmax(-1)
        assert float((moved - clean).abs().sum() / 2) <= tolerance + 1e-5
        assert float(found.distance[number, 0]) == pytest.approx(np.mean(apart), abs=1e-4)


def test_rows_that_are_not_read_never_count():
    question = ask("sequence classification")
    (given,) = Search(question, Scope(), FEW).leeways
    assert given.rows.tolist() == [0]
    special = torch.tensor(question.inputs.tokens[0].special)
    assert not given.free[..., special].any()
    assert given.free[..., ~special].all()


def test_layers_above_can_be_held():
    question = ask("sequence classification")
    search = Search(question, Scope("layer", 0, frozen=True), FEW)
    first, last = question.subject.sites
    passed = search.top.run(search.held)
    assert set(search.held) == {last}
    changed = {**search.held, first: torch.ones_like(passed.attention[first]) / 7}
    assert torch.equal(search.top.run(changed).attention[last], passed.attention[last])


def test_a_text_among_others_is_a_text_alone():
    task = "sequence classification"
    texts = [TEXTS[task][0], TEXTS[task][2]]
    together = adversarial_attention(subject(task).ask(texts), candidates=2, steps=8)
    alone = adversarial_attention(subject(task).ask(texts[:1]), candidates=2, steps=8)
    assert together.texts == (0, 1)
    assert together.figures[DISTANCE][0] == pytest.approx(alone.figures[DISTANCE][0], abs=1e-3)


def test_a_text_without_a_choice_says_nothing():
    found = adversarial_attention(ignores_attention().ask(["good"]), candidates=2, steps=2)
    assert np.isnan(found.figures[DISTANCE]).all()
    assert found.sentence == "No text has attention that can be moved."


@pytest.mark.parametrize("scope", [Scope("token"), Scope("layer")])
def test_many_attentions_are_refused(scope):
    with pytest.raises(UsageError, match="an adversary takes the scope"):
        adversarial_attention([ask("sequence classification")], scope)
