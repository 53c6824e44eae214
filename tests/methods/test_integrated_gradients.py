"""Integrated gradients: completeness, a linear model's closed form, and captum's own."""

import re
import warnings

import pytest
import torch
from subjects import ASKED, TEXTS, arguments, ask, plain, subject
from tiny import TASKS, subject_parts

import attlas
from attlas.errors import UnknownNameError, UsageError
from attlas.methods.integrated_gradients import integrated_gradients

TASK = "sequence classification"


def explain(task, text, **options):
    asked = {**ASKED.get(task, {}), **options}
    return attlas.explain(subject(task), text, "integrated_gradients", **asked)


@pytest.mark.parametrize("task", TASKS)
def test_scores_add_up_to_what_the_target_gains(task):
    question = ask(task)
    rough, fine = (integrated_gradients(question, steps=steps) for steps in (30, 270))
    masked = mask(task, TEXTS[task][0])
    gain = question.known_scores[0]["logit"] - logit(task, masked, question.targets[0])
    assert abs(gain) > 0.05
    assert abs(fine.scores.sum() - gain) < 0.02 * abs(gain) + 1e-3
    assert abs(fine.scores.sum() - gain) <= abs(rough.scores.sum() - gain) + 1e-4


def mask(task, text):
    """The arguments of the plain model with all content masked, or all patches blank."""
    given = arguments(task, text, **ASKED.get(task, {}))
    if "pixel_values" in given:
        return {"pixel_values": torch.zeros_like(given["pixel_values"])}
    tokenizer = subject(task).tokenizer
    nothing = tokenizer.mask_token_id
    if nothing is None:
        nothing = tokenizer.pad_token_id
    special = torch.tensor(tokenizer.all_special_ids)
    for name in ("input_ids", "decoder_input_ids"):
        if name in given:
            content = ~torch.isin(given[name], special)
            given[name] = given[name].masked_fill(content, nothing)
    return given


def logit(task, given, target):
    with torch.no_grad():
        output = plain(task)(**given)
    if task == "question answering":
        table = torch.stack([output.start_logits[0], output.end_logits[0]])
    else:
        table = output.logits[0] if output.logits.ndim == 3 else output.logits
    return target.score(table, "logit").item()


def linear_subject():
    """BERT whose logits are a linear function of the word embeddings' mean."""
    model, tokenizer = subject_parts(TASK)
    table = model.bert.embeddings.word_embeddings
    heads = torch.randn(3, table.embedding_dim, generator=torch.Generator().manual_seed(0))

    def add(_module, _given, output):
        output.logits = output.logits * 0 + model.seen.mean(1) @ heads.T
        return output

    def keep(_module, given):
        model.seen = given[0]  # words, positions and segments, added up

    model.bert.embeddings.LayerNorm.register_forward_pre_hook(keep)
    model.register_forward_hook(add)
    return attlas.Subject(model, tokenizer), table.weight.detach(), heads


def test_a_linear_model_in_closed_form():
    asked, table, heads = linear_subject()
    (question,) = asked.ask([TEXTS[TASK][0]])
    ids = torch.tensor(asked.tokenizer(TEXTS[TASK][0])["input_ids"])
    target = question.targets[0].picks[0][1]
    special = torch.isin(ids, torch.tensor(asked.tokenizer.all_special_ids))
    for name, base in {
        "mask": table[asked.tokenizer.mask_token_id],
        "pad": table[asked.tokenizer.pad_token_id],
        "zero": torch.zeros(table.shape[1]),
    }.items():
        expected = (table[ids] - base) @ heads[target] / len(ids)
        expected = expected.masked_fill(special, 0)
        (found,) = integrated_gradients(question, steps=3, baseline=name).scores
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_is_what_captum_gives():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from captum.attr import LayerIntegratedGradients
    model, text = plain(TASK), TEXTS[TASK][0]
    given, masked = arguments(TASK, text), mask(TASK, text)

    def logits(ids):
        return model(input_ids=ids).logits

    method = LayerIntegratedGradients(logits, model.bert.embeddings.word_embeddings)
    expected = method.attribute(
        given["input_ids"], masked["input_ids"], target=1, n_steps=12, method="riemann_middle"
    )
    found = explain(TASK, text, target=1, steps=12).scores
    torch.testing.assert_close(
        torch.from_numpy(found), expected.sum(-1)[0].detach(), atol=1e-5, rtol=1e-4
    )


def steep_subject():
    """BERT whose logits jump where the mean of the word embeddings passes a point of the way."""
    asked, table, _ = linear_subject()
    ids = torch.tensor(asked.tokenizer(TEXTS[TASK][0])["input_ids"])
    content = ~torch.isin(ids, torch.tensor(asked.tokenizer.all_special_ids))
    way = (table[ids] - table[asked.tokenizer.mask_token_id])[content].sum(0) / len(ids)
    start = asked.model.bert.embeddings
    seen = {}

    def jump(_module, _given, output):
        along = (asked.model.seen.mean(1) - seen["from"]) @ way / way.square().sum()
        output.logits = torch.stack([4000 * along, 0 * along, 0 * along], 1).sub(1300).tanh() * 5
        return output

    masked = ids.masked_fill(content, asked.tokenizer.mask_token_id)[None]
    with torch.no_grad():
        start(masked)
    seen["from"] = asked.model.seen.mean(1)
    asked.sites  # noqa: B018  found while its logits still hang on its attention
    asked.model.register_forward_hook(jump)
    return asked


def test_a_jump_is_integrated_and_too_few_points_are_told(tmp_path):
    asked, text = steep_subject(), TEXTS[TASK][0]
    found = attlas.explain(asked, text, "integrated_gradients", 0)
    assert found.scores.sum() == pytest.approx(10, rel=0.02)
    assert not found.warning
    even, few = (
        attlas.explain(asked, text, "integrated_gradients", 0, **how)
        for how in ({"steps": 50}, {"most": 20})
    )
    for doubted in (even, few):
        assert abs(doubted.scores.sum() - 10) > 1
        assert doubted.notes[0] == doubted.warning
        assert doubted.warning.startswith("not converged: ")
        assert doubted.payload()["warning"] == doubted.warning
        assert attlas.Explanation.load(doubted.save(tmp_path / "it")).warning == doubted.warning


def test_a_generation_says_which_tokens_are_not_converged(tmp_path):
    asked = subject("causal lm")
    given = {"max_new_tokens": 3, "most": 3, "tolerance": 1e-9}
    found = attlas.explain_generation(asked, "a cat sat", "integrated_gradients", **given)
    assert found.notes[0] == found.warning == found.payload()["warning"]
    assert found.warning.startswith("3 of 3 written tokens, the first of them: not converged")
    kept = attlas.Generation.load(found.save(tmp_path / "it"))
    assert kept.row(1).warning == kept.row(1).notes[0] == found.row_warnings[1]
    assert found.warning not in kept.row(1).notes
    assert kept.mean().warning == kept.mean().notes[0] == found.warning


def test_the_result_says_how_far_it_is_from_complete():
    found = explain(TASK, TEXTS[TASK][0], target=0, steps=5)
    (note,) = [note for note in found.notes if "midpoints" in note]
    gain, before, missed = map(float, re.findall(r"(?:gains|baseline's|by) (\S+?),?(?: |$)", note))
    assert note.startswith("5 midpoints, mask baseline: ")
    assert gain + before == pytest.approx(found.target.value, abs=2e-3)
    assert missed == pytest.approx(abs(found.scores.sum() - gain), abs=2e-3)


def test_tokens_that_are_no_content_score_zero():
    found = explain(TASK, TEXTS[TASK][0])
    zero = [score == 0 for score in found.scores]
    assert zero == list(found.tokens.special)


def test_wrong_options_are_named():
    with pytest.raises(UsageError, match="steps of integrated_gradients must be at least 1, not 0"):
        explain(TASK, "a cat", steps=0)
    with pytest.raises(UsageError, match="tolerance of integrated_gradients is above 0, not 0"):
        explain(TASK, "a cat", tolerance=0)
    with pytest.raises(UnknownNameError, match=r"unknown baseline 'blank'.*mask, pad, zero"):
        explain(TASK, "a cat", baseline="blank")
    with pytest.raises(UsageError, match="has no padding token"):
        explain("image classification", TEXTS["image classification"][0], baseline="pad")
