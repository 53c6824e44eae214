import numpy as np
import pytest
import torch
from known_models import copies_attended, ignores_attention
from scipy.optimize import brentq
from scipy.spatial.distance import jensenshannon
from subjects import TEXTS, ask, subject

from attlas.errors import UsageError
from attlas.models.asking.filling import FILLER, filled
from attlas.models.asking.scores import run_logits
from attlas.models.tap.edits import replace
from attlas.trials.adversarial_attention import DISTANCE, SHARE, adversarial_attention, at
from attlas.trials.searching.leeway import divergence, key_divergences, largest_divergence
from attlas.trials.searching.other_attention import find_other_attention
from attlas.trials.searching.search import Proposals, Search, SearchPlan
from attlas.trials.support.scope import Scope

FEW = SearchPlan(candidates=2, steps=8, rate=0.2, rounds=4)


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
    starts = zip(search.leeways, search.best, strict=True)
    search._optimise([search._first(*each, 0) for each in starts])
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
    few = {"candidates": 2, "steps": 8, "rounds": 8}
    together = adversarial_attention(subject(task).ask(texts), **few)
    alone = adversarial_attention(subject(task).ask(texts[:1]), **few)
    assert together.texts == (0, 1)
    assert together.figures[DISTANCE][0] == pytest.approx(alone.figures[DISTANCE][0], abs=1e-3)


def test_a_text_without_a_choice_says_nothing():
    found = adversarial_attention(
        ignores_attention().ask(["good"]), candidates=2, steps=2, rounds=2
    )
    assert np.isnan(found.figures[DISTANCE]).all()
    assert found.sentence == "No text has attention that can be moved."


@pytest.mark.parametrize("scope", [Scope("token"), Scope("layer")])
def test_many_attentions_are_refused(scope):
    with pytest.raises(UsageError, match="an adversary takes the scope"):
        adversarial_attention([ask("sequence classification")], scope)


def drawn_shares(given, kind, random):
    """Twenty attentions over the free keys: of random logits, one key each, permuted, or mixed."""
    shape = (20, *given.free.shape)
    order = torch.rand(shape, generator=random)
    if kind == "permuted":
        places = order.masked_fill(~given.free, 2).argsort(-1).argsort(-1)
        ordered = given.own.masked_fill(~given.free, 2).sort(-1).values.expand(shape)
        return ordered.gather(-1, places) * given.free
    sharp = {"logits": 3.0, "corners": 1e4, "mixed": 1e4}[kind]
    drawn = given.softmax(sharp * torch.randn(shape, generator=random))
    way = order[..., :1, :1, :1] if kind == "mixed" else 1.0
    return given.own + way * (drawn - given.own)


@torch.no_grad()
def random_search(question, passes, seed):
    """The farthest of as many random attentions as the passes ask about, `[tolerance, text]`."""
    search = Search(question, Scope(), SearchPlan(candidates=10))
    random = torch.Generator().manual_seed(seed)
    best = torch.zeros(len(search.tolerances), len(question))
    for number in range(passes * SearchPlan().copies // 20):
        kind = ("logits", "corners", "permuted", "mixed")[number % 4]
        shares = [drawn_shares(given, kind, random) for given in search.leeways]
        far, change = divergence(search.leeways, shares, search.own), search._change(shares)
        for place, tolerance in enumerate(search.plan.tolerances):
            within = torch.where(change <= tolerance, far, 0).amax(dim=0)
            best[place] = torch.maximum(best[place], within)
    return best


@pytest.mark.slow
def test_on_every_text_it_goes_farther_than_random_search_of_the_same_cost(monkeypatch):
    """A pass with its gradient counts as three. Random search may be lucky once: two are asked."""
    passes = []
    usual = Search._change

    def counted(search, shares):
        passes.append(3 if torch.is_grad_enabled() else 1)
        return usual(search, shares)

    found, drawn = [], []
    texts = [
        "film not kind the a dog",
        "was good sat it my cat",
        "very bad film it was not",
        "dog sat kind my the good",
    ]
    for question in subject("sequence classification").ask(texts):
        with monkeypatch.context() as patch:
            patch.setattr(Search, "_change", counted)
            found.append(Search(question, Scope(), SearchPlan()).run(0).distance)
        drawn.append(sum(random_search(question, sum(passes), seed) for seed in (1, 2)) / 2)
        passes.clear()
    found, drawn = torch.cat(found, dim=1), torch.cat(drawn, dim=1)
    assert (found > drawn).all()


def test_the_divergence_of_each_key_is_that_of_all_weight_on_it():
    own = torch.tensor([0.5, 0.3, 0.2, 0.0])
    wanted = [by_scipy(own.numpy(), corner) for corner in np.eye(4)]
    assert key_divergences(own[None, None, None])[0, 0, 0].numpy() == pytest.approx(
        wanted, abs=1e-6
    )


def test_proposals_are_attention_on_free_keys_and_move_some_rows_or_all():
    question = ask("sequence classification")
    leeways = Search(question, Scope("all"), FEW).leeways
    everywhere = torch.tensor([False, True] * 20)
    parents = [each.own.expand(40, *each.own.shape) for each in leeways]
    made = Proposals(question, leeways, 40, seed=0).made_from(parents, everywhere)
    moved = []
    for given, own, new in zip(leeways, parents, made, strict=True):
        counted = given.counted.expand(40, -1, -1, -1)
        assert new.sum(-1)[counted].numpy() == pytest.approx(1, abs=1e-5)
        assert (new >= 0).all() and (new[~given.free.expand_as(new)] == 0).all()
        moved.append((new != own).any(dim=-1)[counted].view(40, -1))
    share = torch.cat(moved, dim=1).double().mean(dim=1)
    assert (share[everywhere] > 0.9).all() and share[~everywhere].median() < 0.5


def test_tokens_that_fill_up_a_text_are_not_shown():
    question = filled(subject("sequence classification").ask(["a good film", "the cat sat on it"]))
    assert FILLER in question.inputs.tokens[0]
    found = adversarial_attention([question], candidates=2, steps=2)
    maps = [each for each in found.plots if each["kind"] == "maps"]
    assert len(maps) == 2
    for each in maps:
        assert FILLER not in each["columns"] and FILLER not in each["rows"]
        (row,) = each["maps"][0]["values"]
        assert sum(row) == pytest.approx(1, abs=1e-4)
    other = find_other_attention(question, 0, Scope(), 0)
    assert FILLER not in other.tokens and other.weights.shape[1] == len(other.tokens)
    assert other.others.shape == other.weights.shape
