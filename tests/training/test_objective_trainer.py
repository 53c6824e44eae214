"""Objectives in the Trainer of transformers: accumulation, half precision, resuming, adapters."""

import pytest
import torch
from learners import EXAMPLES, FAMILIES, classifier, features, tokens
from peft import LoraConfig, get_peft_model
from transformers import Trainer, TrainingArguments

import attlas
from attlas.errors import UnsupportedModelError, UsageError
from attlas.objectives import OBJECTIVES

ADAPTED = {
    "Bert": ["query", "value"],
    "DistilBert": ["q_lin", "v_lin"],
    "ModernBert": ["Wqkv"],
    "Llama": ["q_proj", "v_proj"],
}
BOTH = ["rationale:weight=0.5,layer=-1", "masked:weight=0.5"]


def trainer(folder, model, objectives=None, kind=attlas.ObjectiveTrainer, **given):
    asked = {"max_steps": 4, "per_device_train_batch_size": 4, "learning_rate": 0.01, **given}
    quiet = {"report_to": [], "disable_tqdm": True, "use_cpu": True, "save_strategy": "no"}
    arguments = TrainingArguments(output_dir=str(folder), **{**quiet, **asked})
    own = {} if kind is Trainer else {"objectives": objectives}
    data = features()
    if kind is Trainer:
        data = [{k: v for k, v in each.items() if k != "marks"} for each in data]
    return kind(model=model, args=arguments, train_dataset=data, processing_class=tokens(), **own)


def weights(model):
    return {name: each.detach().clone() for name, each in model.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_with_a_weight_of_zero_it_is_plain_training_to_the_bit(tmp_path, name):
    found = []
    for kind in (Trainer, attlas.ObjectiveTrainer):
        model = classifier()
        trainer(tmp_path, model, [f"{name}:weight=0"], kind, max_steps=2).train()
        found.append(weights(model))
    assert same(*found)


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_of_zero_are_plain_training_in_every_family(tmp_path, family):
    every, found = [f"{name}:weight=0" for name in OBJECTIVES.names()], []
    for kind in (Trainer, attlas.ObjectiveTrainer):
        model = classifier(family)
        trainer(tmp_path, model, every, kind, max_steps=2).train()
        found.append(weights(model))
    assert same(*found)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_trained_and_left_as_it_was(tmp_path, family):
    model = classifier(family)
    before = weights(model)
    made = trainer(tmp_path, model, BOTH, logging_steps=2)
    made.train()
    logged = [each for each in made.state.log_history if "loss" in each]
    names = {"objective_rationale", "objective_masked"}
    assert logged and all(names <= each.keys() for each in logged)
    assert not same(before, weights(model))
    assert model.config._attn_implementation == "sdpa"
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_saved_model_opens_in_plain_transformers_without_a_trace(tmp_path, family):
    model = classifier(family)
    made = trainer(tmp_path, model, BOTH, max_steps=2)
    made.train()
    made.save_model(str(tmp_path / "saved"))
    again = type(model).from_pretrained(tmp_path / "saved")
    assert same(weights(model), weights(again))
    for file in (tmp_path / "saved").glob("*.json"):
        assert "attlas" not in file.read_text()


@pytest.mark.parametrize("family", FAMILIES)
def test_accumulated_steps_are_those_of_a_whole_batch(tmp_path, family):
    """As far as the labels' loss is: of classifiers, the Trainer adds up the means of parts."""

    def moved(objectives, **given):
        model = classifier(family, dropout=0.0)
        before = weights(model)
        asked = {"optim": "sgd", "max_steps": 1, "max_grad_norm": 0, "learning_rate": 0.1}
        trainer(tmp_path, model, objectives, lr_scheduler_type="constant", **asked, **given).train()
        after = weights(model)
        return {name: after[name] - before[name] for name in before}

    parts = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    whole = {"per_device_train_batch_size": 8}
    name = "score.weight" if family == "Llama" else "classifier.weight"
    plain = moved(None, **parts)[name].norm() / moved(None, **whole)[name].norm()
    one, other = (moved("rationale:weight=0.5", **each) for each in (parts, whole))
    for key in one:
        torch.testing.assert_close(one[key], plain * other[key], atol=1e-6, rtol=1e-3)


def test_label_smoothing_divides_by_all_labels_and_so_do_objectives(tmp_path):
    model = classifier(dropout=0.0)
    made = trainer(tmp_path, model, "conicity:weight=3", label_smoothing_factor=0.1)
    inputs = made._prepare_inputs(next(iter(made.get_train_dataloader())))
    model.train()
    half = made.compute_loss(model, dict(inputs), num_items_in_batch=torch.tensor(8))
    full = made.compute_loss(model, dict(inputs), num_items_in_batch=torch.tensor(4))
    torch.testing.assert_close(2 * half, full)


@pytest.mark.parametrize("family", FAMILIES)
def test_half_precision(tmp_path, family):
    model = classifier(family)
    asked = [*BOTH, "adversarial_keys:weight=0.1"]
    made = trainer(tmp_path, model, asked, bf16=True, max_steps=2)
    found = made.train()
    assert torch.isfinite(torch.tensor(found.training_loss))
    assert all(torch.isfinite(each).all() for each in model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_training_that_is_resumed_ends_with_the_same_weights(tmp_path, family):
    often = {"save_strategy": "steps", "save_steps": 2}
    whole = classifier(family)
    trainer(tmp_path / "whole", whole, BOTH, **often).train()
    again = classifier(family, seed=5)
    trainer(tmp_path / "again", again, BOTH, **often).train(
        resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-2")
    )
    assert same(weights(whole), weights(again))


@pytest.mark.parametrize("family", FAMILIES)
def test_adapters_alone_learn(tmp_path, family):
    base = classifier(family)
    before = weights(base)
    model = get_peft_model(base, LoraConfig(task_type="SEQ_CLS", target_modules=ADAPTED[family]))
    trainer(tmp_path, model, BOTH).train()
    learned = weights(model)
    for name, value in before.items():
        kept = learned.get(f"base_model.model.{name}")
        assert kept is None or torch.equal(kept, value), name
    grown = [each for name, each in learned.items() if "lora_B" in name]
    assert grown and all(each.abs().max() > 0 for each in grown)


def test_evaluation_is_of_the_labels_alone(tmp_path):
    model = classifier()
    made, plain = trainer(tmp_path, model, BOTH), trainer(tmp_path, model, None)
    one, other = (each.evaluate(features())["eval_loss"] for each in (made, plain))
    assert one == other


def test_marks_are_those_of_the_marked_words():
    first = features()[0]
    marked = [t for t, m in zip(first["input_ids"], first["marks"], strict=True) if m]
    assert tokens().decode(marked) == "not good"
    pair = attlas.Example(("not good", "a good film"), "bad", ((2, 6),))
    (feature,) = attlas.marked_features(tokens(), [pair])
    marked = [t for t, m in zip(feature["input_ids"], feature["marks"], strict=True) if m]
    assert tokens().decode(marked) == "good" and sum(feature["marks"]) == len(marked)
    with pytest.raises(UsageError, match="unknown label 'bad': allowed: good"):
        attlas.marked_features(tokens(), EXAMPLES[:1], {"good": 0})


def test_marks_stand_where_their_tokens_do_on_either_side_of_the_padding(tmp_path):
    made = trainer(tmp_path, classifier(), BOTH)
    for side in ("right", "left"):
        made.data_collator.other.tokenizer.padding_side = side
        batch = made.data_collator(features())
        for ids, marks, each in zip(batch["input_ids"], batch["marks"], features(), strict=True):
            wanted = [t for t, m in zip(each["input_ids"], each["marks"], strict=True) if m]
            assert ids[marks > 0].tolist() == wanted
    made.data_collator.other.tokenizer.padding_side = "right"


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_ways_of_training_that_cannot_be_opened_are_refused(tmp_path):
    with pytest.raises(UnsupportedModelError, match="gradient checkpointing"):
        trainer(tmp_path, classifier(), BOTH, gradient_checkpointing=True)
    trainer(tmp_path, classifier(), None, gradient_checkpointing=True)
    with pytest.raises(UnsupportedModelError, match="a compiled model cannot be opened"):
        trainer(tmp_path, torch.compile(classifier()), BOTH)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_that_computes_its_blocks_again_is_refused_when_it_is_told_so(tmp_path, family):
    early, late = classifier(family), classifier(family)
    early.gradient_checkpointing_enable()
    with pytest.raises(UnsupportedModelError, match="gradient checkpointing"):
        trainer(tmp_path, early, BOTH)
    made = trainer(tmp_path, late, BOTH)
    late.gradient_checkpointing_enable()
    with pytest.raises(UnsupportedModelError, match="gradient checkpointing"):
        made.train()


def test_another_class_of_trainer_can_be_taken(tmp_path):
    class Mine(Trainer):
        asked = 0

        def compute_loss(self, *given, **named):
            Mine.asked += 1
            return super().compute_loss(*given, **named)

    model = classifier()
    trainer(tmp_path, model, "conicity:weight=0.5", attlas.with_objectives(Mine)).train()
    assert Mine.asked == 4
