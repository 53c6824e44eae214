"""PEFT folders and GGUF files by their path."""

import json
import shutil

import pytest
import tiny
import torch
from peft import LoraConfig, PromptTuningConfig, TaskType, get_peft_model
from safetensors.torch import load_file, save_file

import attlas
from attlas.errors import ModelError, UnsupportedModelError
from attlas.models.facts import places

TEXT = "a great film"


def saved(folder, task, head=None):
    """A tiny model in a folder, its own tokenizer beside it."""
    model, words = tiny.subject_parts(task)
    base = model if head is None else head(model)
    base.save_pretrained(folder)
    words.save_pretrained(folder)
    return str(folder), words


@pytest.mark.parametrize(
    ("task", "kind"), [("causal lm", TaskType.CAUSAL_LM), ("sequence classification", "SEQ_CLS")]
)
def test_an_adapter_is_added_to_the_model_that_it_names(tmp_path, task, kind):
    place, words = saved(tmp_path / "base", task)
    model = type(tiny.subject_parts(task)[0]).from_pretrained(place)
    turned = {"fan_in_fan_out": task == "causal lm"}  # GPT-2 stores its weights turned
    config = LoraConfig(task_type=kind, init_lora_weights=False, **turned)
    shell = get_peft_model(model, config).eval()
    shell.save_pretrained(tmp_path / "adapter")
    subject = attlas.load(tmp_path / "adapter")
    ids = torch.tensor([words(TEXT)["input_ids"]])
    with torch.no_grad():
        expected, plain = shell(input_ids=ids).logits, attlas.load(place).model(ids).logits
        torch.testing.assert_close(subject.model(ids).logits, expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(expected, plain, atol=1e-3)
    assert attlas.explain(subject, TEXT, "raw_attention").origin.model == str(tmp_path / "adapter")


def test_an_adapter_brings_a_head_that_its_base_lacks(tmp_path):
    place, words = saved(tmp_path / "base", "sequence classification", lambda model: model.bert)
    kind = type(tiny.subject_parts("sequence classification")[0])
    model = kind.from_pretrained(place, num_labels=3)
    shell = get_peft_model(model, LoraConfig(task_type="SEQ_CLS", init_lora_weights=False)).eval()
    shell.save_pretrained(tmp_path / "adapter")
    words.save_pretrained(tmp_path / "adapter")
    subject = attlas.load(tmp_path / "adapter")
    assert len(subject.labels) == 3
    ids = torch.tensor([words(TEXT)["input_ids"]])
    with torch.no_grad():
        expected = shell(input_ids=ids).logits
        torch.testing.assert_close(subject.model(ids).logits, expected, rtol=1e-4, atol=1e-5)


def test_adapters_that_cannot_be_opened(tmp_path, monkeypatch):
    place, _ = saved(tmp_path / "base", "causal lm")
    model = type(tiny.subject_parts("causal lm")[0]).from_pretrained(place)
    prompts = PromptTuningConfig(task_type=TaskType.CAUSAL_LM, num_virtual_tokens=2)
    get_peft_model(model, prompts).save_pretrained(tmp_path / "prompts")
    with pytest.raises(UnsupportedModelError, match="adds tokens of its own"):
        attlas.load(tmp_path / "prompts")
    (tmp_path / "prompts" / "adapter_model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"without adapter_model\.safetensors"):
        attlas.load(tmp_path / "prompts")
    monkeypatch.setattr(places, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="is a PEFT adapter: to load it, install the package peft"):
        attlas.load(tmp_path / "prompts")


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    home = tmp_path_factory.mktemp("adapters")
    place, _ = saved(home / "base", "sequence classification")
    model = type(tiny.subject_parts("sequence classification")[0]).from_pretrained(place)
    config = LoraConfig(task_type="SEQ_CLS", init_lora_weights=False)
    get_peft_model(model, config).save_pretrained(home / "adapter")
    return home / "adapter"


def changed(folder, **values):
    path = folder / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def without(folder, part):
    path = folder / "adapter_model.safetensors"
    weights = load_file(path)
    del weights[next(name for name in weights if part in name)]
    save_file(weights, path)


def write(folder, name, content):
    (folder / name).write_bytes(content)


WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"
DAMAGED = {
    "a weight is missing": lambda folder: without(folder, "lora_B"),
    "a weight goes nowhere": lambda folder: changed(folder, target_modules=["query"]),
    "a layer goes nowhere": lambda folder: changed(folder, layers_to_transform=[0]),
    "another kind": lambda folder: changed(folder, peft_type="IA3"),
    "another form": lambda folder: changed(folder, use_dora=True),
    "no kind": lambda folder: changed(folder, peft_type="x"),
    "no task": lambda folder: changed(folder, task_type="x"),
    "weights cut": lambda folder: write(folder, WEIGHTS, (folder / WEIGHTS).read_bytes()[:-9]),
    "weights empty": lambda folder: write(folder, WEIGHTS, b""),
    "settings cut": lambda folder: write(folder, CONFIG, b'{"peft'),
    "settings a list": lambda folder: write(folder, CONFIG, b"[]"),
    "settings of brackets": lambda folder: write(folder, CONFIG, b"[" * 100_000),
    "settings no text": lambda folder: write(folder, CONFIG, b"\xff\xfe"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", DAMAGED)
def test_a_damaged_adapter_is_one_line(way, adapter, tmp_path):
    folder = shutil.copytree(adapter, tmp_path / "copy")
    assert attlas.load(folder).labels
    DAMAGED[way](folder)
    with pytest.raises(ModelError, match=r"is a damaged PEFT adapter|cannot be loaded") as told:
        attlas.load(folder)
    assert "\n" not in str(told.value)


def test_a_gguf_file_that_is_not_there(tmp_path):
    with pytest.raises(ModelError, match=r"the file .*none\.gguf is not there"):
        attlas.load(str(tmp_path / "none.gguf"))


def test_a_gguf_file_without_its_package(tmp_path, monkeypatch):
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    monkeypatch.setattr(places, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="a GGUF file: to load it, install the package gguf"):
        attlas.load(path)


def test_a_gguf_file_is_handed_over_by_its_name(tmp_path, monkeypatch):
    import transformers

    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(places, "find_spec", lambda name: True)
    asked = []

    def config(place, **options):
        asked.append((place, options["gguf_file"]))

    def model(place, **options):
        asked.append((place, options["gguf_file"]))
        raise ValueError("as far as here")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", config)
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", model)
    with pytest.raises(ModelError, match="as far as here"):
        attlas.load(tmp_path / "model.gguf")
    assert asked == [(str(tmp_path), "model.gguf")] * 2
