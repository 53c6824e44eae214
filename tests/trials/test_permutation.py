"""Permutation and uniform attention, on models of known truth and against plain loops."""

import known_models
import numpy as np
import pytest
import torch
from subjects import TEXTS, subject

from attlas.auditing.verdict.rules import Rules, is_unused
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.asking.reading import read_attention
from attlas.models.asking.scores import run_logits
from attlas.models.tap.edits import Edit
from attlas.results.support import plots
from attlas.trials import TRIALS, Scope, TrialOutcome, attention_use
from attlas.trials.permutation import permutation
from attlas.trials.rewriting.rewritings import shuffle_columns
from attlas.trials.rewriting.rewritten_answers import RewritingPlan, run_plan
from attlas.trials.uniform import uniform

IGNORED = ["good bad fine", "bad bad good", "good fine", "fine bad good"]
COPIED = ["GOOD bad bad", "BAD good good", "good BAD good bad", "GOOD bad", "bad bad GOOD good"]
SCOPES = [Scope(), Scope("layer"), Scope("all"), Scope(specials=True), Scope("all", frozen=True)]
TASKS = ["sequence classification", "causal lm"]


def questions(task):
    return subject(task).ask(TEXTS[task])


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_nothing_moves_a_model_that_ignores_its_attention(scope):
    asked = known_models.ignores_attention().ask(IGNORED)
    tried = [permutation(asked, scope, repeats=20), uniform(asked, scope)]
    for each in tried:
        effects = [v for name, v in each.figures.items() if name.startswith(("diff", "flips"))]
        assert len(effects) >= 3
        assert all((values == 0).all() for values in effects)
        assert "not used" in each.sentence
    found = attention_use(*tried)
    assert (found.mean, found.low, found.high, found.inputs) == (0, 0, 0, len(IGNORED))
    assert is_unused(found, Rules())


def test_moving_the_weight_to_a_word_of_the_other_class_always_flips():
    asked = known_models.copies_attended().ask(COPIED)
    plan = RewritingPlan("permutation of columns", shuffle_columns, 50, 3)
    turned = 0
    for question in asked:
        (opened,) = Scope().open_sites(question)
        (found,) = run_plan(question, Scope(), [opened], plan)
        (call,) = read_attention(question)
        draws = plan.draws(question, opened.site, range(50))
        new = shuffle_columns(call.weights[None], opened.entries(call.visible), draws)
        seen = new[:, :, 0, 0].argmax(dim=-1)  # the first head reads the word of its largest weight
        for row, tokens in enumerate(question.inputs.tokens):
            marked = next(word for word in tokens if word.isupper() and word.isalpha())
            other = [tokens[place].lower() != marked.lower() for place in seen[:, row].tolist()]
            assert found[:, row, 1].tolist() == other
            assert np.allclose(found[:, row, 0], np.array(other) * np.tanh(4), atol=1e-6)
            turned += sum(other)
    assert turned > 50


def answers(question, edits=()):
    """The distributions of a plain pass."""
    with torch.no_grad(), question.subject.tap(edits):
        logits = run_logits(question)
    return logits[:, -1].double().softmax(-1)


def distance(one, other):
    return (one - other).abs().sum(-1) / 2


def put(weights, site):
    return Edit("put", lambda *_: weights).at(kind=site.kind, layer=site.layer)


@pytest.mark.parametrize("task", TASKS)
def test_branches_give_what_a_plain_loop_gives(task):
    plan = RewritingPlan("permutation of columns", shuffle_columns, 4, 0)
    tried = permutation(questions(task), Scope("layer"), repeats=4)
    for question in questions(task):
        own = answers(question)
        calls = read_attention(question)
        for opened in Scope("layer").open_sites(question):
            (call,) = [each for each in calls if each.site == opened.site]
            draws = plan.draws(question, call.site, range(4))
            new = shuffle_columns(call.weights[None], opened.entries(call.visible), draws)
            moved = [distance(answers(question, put(each, call.site)), own) for each in new]
            for row, text in enumerate(question.order):
                place = tried.texts.index(text)
                expected = np.array([each[row].item() for each in moved])
                name = f", layer {call.site.layer}"
                for figure, value in (("", expected.mean()), ("median ", np.median(expected))):
                    found = tried.figures[f"{figure}difference{name}"][place]
                    assert found == pytest.approx(value, abs=1e-5)


def even(question, opened, call):
    """The content weight of each row that counts, spread over the content keys that it sees."""
    special = [tokens.special for tokens in question.inputs.tokens]
    new = call.weights.clone()
    for row in range(len(question)):
        for query in opened.rows[row].nonzero()[:, 0].tolist():
            seen = call.visible[row, 0, query].tolist()
            keys = [k for k, see in enumerate(seen) if see and not special[row][k]]
            if keys:
                part = call.weights[row, :, query, keys]
                new[row, :, query, keys] = part.mean(-1, keepdim=True).expand_as(part)
    return new


@pytest.mark.parametrize("task", TASKS)
def test_layers_above_keep_their_attention_if_frozen(task):
    scope = Scope("layer", 0, frozen=True)
    (question,) = subject(task).ask(TEXTS[task][:1])
    (opened,) = scope.open_sites(question)
    first, second = read_attention(question)
    edits = [put(even(question, opened, first), first.site), put(second.weights, second.site)]
    frozen = distance(answers(question, edits), answers(question)).item()
    anew = distance(answers(question, edits[:1]), answers(question)).item()
    assert uniform([question], scope).figures["difference"][0] == pytest.approx(frozen, abs=1e-6)
    free = uniform([question], Scope("layer", 0)).figures["difference"][0]
    assert free == pytest.approx(anew, abs=1e-6)
    assert abs(frozen - anew) > 1e-4


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("frozen", [False, True])
def test_all_layers_are_rewritten_one_upon_the_other(task, frozen):
    (question,) = subject(task).ask(TEXTS[task][:1])
    low, high = Scope("all").open_sites(question)
    first, second = read_attention(question)
    edits = [put(even(question, low, first), first.site)]
    if not frozen:
        with question.subject.tap(edits) as seen:
            run_logits(question)
        second = seen.calls[1]
    edits.append(put(even(question, high, second), second.site))
    expected = distance(answers(question, edits), answers(question)).item()
    tried = uniform([question], Scope("all", frozen=frozen))
    assert tried.figures["difference"][0] == pytest.approx(expected, abs=1e-6)


def test_rows_without_a_path_to_the_readout_never_count():
    asked = questions("sequence classification")  # read from its first row alone
    whole = permutation(asked, Scope("layer", 1), repeats=10)
    row = permutation(asked, Scope(), repeats=10)
    for name, values in row.figures.items():
        assert np.array_equal(whole.figures[name], values, equal_nan=True)


def test_special_tokens_are_held():
    asked = subject("sequence classification").ask(["a", "b"])
    assert all(sum(not each for each in q.inputs.tokens[0].special) == 1 for q in asked)
    held = permutation(asked, repeats=5).figures["difference"]
    assert (held < 1e-6).all()
    assert (permutation(asked, Scope(specials=True), repeats=5).figures["difference"] > 1e-3).all()


def test_a_text_is_found_the_same_alone_and_among_others():
    task = "sequence classification"
    together = permutation(questions(task), repeats=10)
    (alone,) = subject(task).ask(TEXTS[task][:1])
    single = permutation([alone], repeats=10)
    place = together.texts.index(0)
    for name in ("difference", "median difference", "flips", "largest weight"):
        found = single.figures[name][0]
        assert found == pytest.approx(together.figures[name][place], abs=1e-6)
    assert np.isnan(single.figures["share of ceiling"]).all()
    assert any("no ceiling" in note for note in single.notes)
    with pytest.raises(UsageError, match="two texts"):
        attention_use(single)


def test_seeds_and_heads_make_a_difference():
    asked = questions("sequence classification")
    figures = [
        permutation(asked, repeats=10, **options).figures["difference"]
        for options in ({}, {"seed": 1}, {"per_head": False}, {"of": "rows"}, {"seed": 0})
    ]
    assert np.array_equal(figures[0], figures[4])
    assert all(not np.allclose(figures[0], other) for other in figures[1:4])


def tried(effects, ceilings):
    values = {"difference": np.array(effects)}
    return TrialOutcome(values, tuple(range(len(effects))), "", {"difference": np.array(ceilings)})


def test_used_is_the_highest_ratio_of_the_sums():
    random = np.random.default_rng(0)
    ceilings = random.uniform(0.3, 0.5, 60)
    low, high = 0.1 * ceilings, random.uniform(0.5, 0.7, 60) * ceilings
    found = attention_use(tried(low, ceilings), tried(high, ceilings))
    assert found.mean == pytest.approx(high.sum() / ceilings.sum())
    assert 0.5 < found.low < found.mean < found.high < 0.7
    assert found.inputs == 60


def test_a_ceiling_near_zero_means_not_used_whatever_the_ratio():
    random = np.random.default_rng(0)
    ceilings = random.uniform(0, 0.002, 40)
    assert attention_use(tried(0.9 * ceilings, ceilings)).high == 0


def test_trials_of_other_texts_are_not_put_together():
    with pytest.raises(UsageError, match="same texts"):
        attention_use(tried([0.1, 0.1], [0.2, 0.2]), tried([0.1], [0.2]))


@pytest.mark.parametrize("name", ["permutation", "uniform"])
@pytest.mark.parametrize("scope", SCOPES[:3], ids=str)
def test_what_is_reported_can_be_drawn(name, scope):
    found = TRIALS[name].run(questions("sequence classification"), scope, seed=1)
    assert found.plots
    for plot in found.plots:
        plots.check_plot(plot)
    for figure, ceiling in found.ceilings.items():
        assert (found.figures[figure] <= ceiling).all()
    assert str(scope) in found.sentence


def test_what_cannot_be_is_refused():
    asked = questions("sequence classification")
    with pytest.raises(UsageError, match="token"):
        permutation(asked, Scope("token"))
    with pytest.raises(UsageError, match="at least 1"):
        permutation(asked, repeats=0)
    with pytest.raises(UnknownNameError, match="columns"):
        permutation(asked, of="collumns")
    with pytest.raises(UnsupportedModelError, match="same keys"):
        permutation(questions("causal lm"), Scope("layer"), of="rows", repeats=2)
    with pytest.raises(UsageError, match="needs a distribution"):
        uniform(questions("regression"))


@pytest.mark.parametrize("scope", [Scope(), Scope("all")], ids=str)
def test_accuracy_is_what_flips_leave_of_two_classes(scope):
    copies = known_models.copies_attended()
    asked = copies.ask(COPIED)
    own = {text: target.picks[0][1] for each in asked for text, target, _ in each.answers()}
    wrong = {text: choice if text else 1 - choice for text, choice in own.items()}
    for run, options in ((permutation, {"repeats": 20}), (uniform, {})):
        right, other = (run(asked, scope, gold=gold, **options) for gold in (own, wrong))
        order = list(right.texts)
        flips = right.figures["flips"]
        assert flips.any()
        assert (right.figures["right as it is"] == 1).all()
        np.testing.assert_allclose(right.figures["right"], 1 - flips)
        first = order.index(0)
        assert other.figures["right as it is"].tolist() == [float(text != 0) for text in order]
        assert other.figures["right"][first] == pytest.approx(flips[first])
    with pytest.raises(UsageError, match="gold has no choice for text"):
        permutation(asked, scope, gold={0: 1})
    assert "right" not in uniform(asked, scope).figures
