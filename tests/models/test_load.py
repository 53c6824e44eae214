"""Loading: where a model may come from, and one clear line where it cannot."""

import json
import re
import shutil

import pytest
import tiny
import torch
from transformers import pipeline

import attlas
from attlas.errors import AttlasError, ModelError, UnknownNameError, UsageError
from attlas.models import load as loading
from attlas.models.encoding.encode_input import sample_input
from attlas.models.facts import places

TEXT = "a great film"


@pytest.fixture
def folder(tmp_path):
    model, tokenizer = tiny.subject_parts("sequence classification")
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_the_embedded_model_needs_nothing():
    subject = attlas.load()
    assert subject.name == "sentiment" in loading.embedded_names()
    assert subject.predict("a great film")["label"].item() == "POSITIVE"
    assert subject.model.dtype == torch.float32 and not subject.model.training


def test_a_folder_is_loaded_as_the_model_it_says_it_is(folder):
    subject = attlas.load(folder)
    model, _ = tiny.subject_parts("sequence classification")
    assert type(subject.model) is type(model)
    expected = model.state_dict()
    assert all(
        torch.equal(each, expected[name]) for name, each in subject.model.state_dict().items()
    )
    assert attlas.explain(subject, TEXT).origin.model == str(folder)


@pytest.mark.parametrize("task", tiny.TASKS)
def test_every_kind_of_model_goes_to_disk_and_back(task, tmp_path):
    model, processor = tiny.subject_parts(task)
    model.save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    loaded, kept = attlas.load(tmp_path), attlas.Subject(model, processor)
    assert loaded.task == kept.task
    text = sample_input(kept)
    assert loaded.predict([text])["label"].tolist() == kept.predict([text])["label"].tolist()


def test_a_pipeline_is_taken_apart():
    model, tokenizer = tiny.subject_parts("sequence classification")
    subject = attlas.load(pipeline("text-classification", model=model, tokenizer=tokenizer))
    assert subject.model is model and subject.tokenizer is tokenizer


def test_a_device_map_is_followed(folder):
    subject = attlas.load(folder, device_map={"": "cpu"})
    plain = attlas.load(folder)
    assert torch.equal(
        torch.tensor(attlas.explain(subject, TEXT).scores),
        torch.tensor(attlas.explain(plain, TEXT).scores),
    )


@pytest.mark.parametrize(
    ("given", "expected"), [("bfloat16", torch.bfloat16), (None, torch.float32)]
)
def test_the_dtype_is_chosen_or_given(folder, given, expected):
    assert attlas.load(folder, dtype=given).model.dtype == expected
    assert attlas.load(folder, dtype=torch.float64).model.dtype == torch.float64


def test_what_is_not_there_is_said_in_one_line(folder, tmp_path):
    wrong = {
        "sentimnt": "unknown model 'sentimnt'",
        str(tmp_path / "nothing"): "is not there",
        str(tmp_path): "no config.json",
        str(folder / "config.json"): "is a file",
    }
    for name, message in wrong.items():
        with pytest.raises(ModelError, match=message) as caught:
            attlas.load(name)
        assert "\n" not in str(caught.value)


def test_a_folder_without_a_model_names_those_that_lie_in_it(folder, tmp_path):
    trained = tmp_path / "trained"
    shutil.copytree(folder, trained / "checkpoint-3")
    (trained / "small.gguf").write_bytes(b"GGUF")
    (trained / "logs").mkdir()
    named = f"give {trained / 'checkpoint-3'} or {trained / 'small.gguf'}"
    with pytest.raises(ModelError, match=re.escape(named)):
        attlas.load(trained)


def test_wrong_options_name_the_right_ones(folder):
    with pytest.raises(UnknownNameError, match="did you mean 'float16'"):
        attlas.load(folder, dtype="flot16")
    for device in ("gpu", "cuda:99", "meta"):
        with pytest.raises(UsageError, match=f"no device '{device}' here: allowed: cpu"):
            attlas.load(folder, device=device)
    with pytest.raises(UnknownNameError, match="did you mean 'causal lm'"):
        attlas.load(folder, task="causal-lm")
    with pytest.raises(UsageError, match="not int"):
        attlas.load(7)


def test_a_head_that_was_not_trained_is_refused(folder):
    with pytest.raises(ModelError, match=r"no weights for .*it was not trained as"):
        attlas.load(folder, task="masked lm")


def test_pickled_weights_are_refused_unless_allowed(folder):
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match="no safetensors weights"):
        attlas.load(folder)
    assert attlas.load(folder, unsafe_weights=True).predict(TEXT)["label"].item()


def test_damaged_files_are_said_to_be(folder, tmp_path):
    damaged = shutil.copytree(folder, tmp_path / "a")
    (damaged / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config\.json"):
        attlas.load(damaged)
    damaged = shutil.copytree(folder, tmp_path / "b")
    for content in (b"\0" * 100, (folder / "model.safetensors").read_bytes()[:-100]):
        (damaged / "model.safetensors").write_bytes(content)
        with pytest.raises(ModelError, match="is damaged: its weights cannot be loaded"):
            attlas.load(damaged)
    damaged = shutil.copytree(folder, tmp_path / "c")
    for path in damaged.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(ModelError, match="tokenizer"):
        attlas.load(damaged)


def test_weights_that_are_not_finite_are_named(folder):
    subject = attlas.load(folder)
    with torch.no_grad():
        subject.model.classifier.weight[0, 0] = float("nan")
    with pytest.raises(ModelError, match=r"damaged: classifier\.weight is not finite"):
        attlas.explain(subject, TEXT)


def test_offline_the_hub_is_not_waited_for(monkeypatch):
    from huggingface_hub import constants

    def no_such_host(*_):
        raise places.socket.gaierror

    monkeypatch.setattr(places.socket, "getaddrinfo", no_such_host)
    monkeypatch.setattr("urllib.request.getproxies", dict)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with loading.hub_in_reach():
        assert constants.HF_HUB_OFFLINE
    assert not constants.HF_HUB_OFFLINE


def sharded(folder, **names):
    """Put the weights of a folder into shards of these names, by an index that names others."""
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    save_file(weights, folder / "one.safetensors", {"format": "pt"})
    torch.save(weights, folder / "one.bin")
    torch.save(weights, folder.parent / "outside.bin")
    save_file(weights, folder.parent / "outside.safetensors", {"format": "pt"})
    return weights


@pytest.mark.parametrize(
    "shard",
    ["one.bin", "../outside.safetensors", "../outside.bin", "{}/outside.safetensors", 7, ""],
)
@pytest.mark.parametrize("index", ["model.safetensors.index.json", "other.safetensors.index.json"])
def test_an_index_names_safetensors_inside_the_folder_and_nothing_else(index, shard, folder):
    weights = sharded(folder)
    named = shard.format(folder.parent) if isinstance(shard, str) else shard
    where = {"metadata": {}, "weight_map": dict.fromkeys(weights, named)}
    (folder / index).write_text(json.dumps(where))
    if index.startswith("other"):
        change_config(folder, transformers_weights=index)
    with pytest.raises(ModelError, match=r"outside its folder|no safetensors") as caught:
        attlas.load(folder)
    assert "\n" not in str(caught.value)


def test_shards_inside_the_folder_are_loaded(folder):
    weights = sharded(folder)
    where = {"metadata": {}, "weight_map": dict.fromkeys(weights, "one.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(where))
    assert attlas.load(folder).predict(TEXT)["label"].item()


def test_a_tokenizer_whose_names_are_no_names_is_refused(folder):
    change_config(folder, "tokenizer_config.json", model_input_names=7)
    with pytest.raises(ModelError, match=r"tokenizer of .* cannot be loaded"):
        attlas.load(folder)


def test_labels_are_words_whatever_a_file_says(folder):
    change_config(folder, id2label={"0": 7, "1": ["a"], "2": "b"})
    assert attlas.load(folder).labels == ["7", "['a']", "b"]


def change_config(folder, name="config.json", **changes):
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    "named",
    ["pipeline", "Trainer", "BertTokenizer", "BertConfig", "AutoModel", "__version__", "utils"],
)
def test_an_architecture_that_is_no_model_is_refused(named, folder):
    change_config(folder, architectures=[named])
    with pytest.raises(ModelError, match=f"names {named}, which is no model") as caught:
        attlas.load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("count", [-1, 10**9])
def test_a_number_of_layers_that_no_model_has_is_refused(count, folder):
    change_config(folder, num_hidden_layers=count)
    with pytest.raises(ModelError, match=rf"has {count} as num_hidden_layers"):
        attlas.load(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"architectures": 7},
        {"architectures": "BertForSequenceClassification"},
        {"architectures": [["a"]]},
        {"num_attention_heads": 0},
        {"num_attention_heads": 7},
        {"hidden_size": 10**12},
        {"vocab_size": 10**12},
        {"vocab_size": -5},
        {"max_position_embeddings": "many"},
        {"hidden_act": "no such function"},
        {"id2label": {"0": None, "x": 3}},
        {"id2label": {"5000": "A"}},
        {"label2id": 3},
        {"layer_norm_eps": "nothing"},
        {"problem_type": "no such type"},
        {"model_type": "no such family"},
        {"pad_token_id": -7},
        {"pad_token_id": 10**9},
        {"is_decoder": "perhaps"},
        {"dtype": "float99"},
        {"attn_implementation": "no such thing"},
    ],
    ids=str,
)
def test_an_absurd_configuration_is_one_clear_line_or_makes_no_difference(change, folder):
    expected = attlas.load(folder).predict(TEXT)["probability"].item()
    change_config(folder, **change)
    try:
        found = attlas.load(folder)
        label = found.predict(TEXT)
        attlas.explain(found, TEXT, "raw_attention")
    except AttlasError as problem:
        assert "\n" not in str(problem) and len(str(problem)) < 600
    else:
        assert isinstance(label["label"].item(), str)
        if not change.keys() & {"problem_type", "is_decoder"}:
            assert label["probability"].item() == pytest.approx(expected)
