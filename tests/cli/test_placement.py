"""Where a model goes, by the same words on the command line as in Python."""

import json

import numpy as np
import tiny

TEXT = "a great film and a bad one"


def test_an_offloaded_model_is_explained(run, tmp_path):
    model, tokenizer = tiny.subject_parts("sequence classification")
    for each in (model, tokenizer):
        each.save_pretrained(tmp_path)
    half = sum(each.numel() * each.element_size() for each in model.parameters()) // 2000
    given = ("explain", "--model", tmp_path, "--json", TEXT, "--method", "gradient")
    memory, folder = f"cpu={half}KB", tmp_path / "offloaded"
    placed = ("--device-map", "auto", "--max-memory", memory, "--offload-folder", folder)
    found = [json.loads(run(*given, *each)[1])["scores"] for each in ((), placed)]
    np.testing.assert_allclose(found[1], found[0], atol=1e-5)


def test_words_that_are_none(run):
    for given, said in [
        (("--device-map", "everywhere"), "unknown device_map 'everywhere'"),
        (("--device-map", "{"), "--device-map is a word or JSON"),
        (("--device-map", "auto", "--device", "cpu"), "not both"),
        (("--device-map", "auto", "--max-memory", "cpu"), "--max-memory is written device=size"),
        (("--device-map", "auto", "--max-memory", "gpu=1GB"), "a GPU by its number, not 'gpu'"),
        (("--device-map", "auto", "--max-memory", "99=1GB"), "no device 'cuda:99' here"),
        (("--device-map", '{"": "gpu"}'), "no device 'gpu' here"),
        (("--device-map", '{"nothing": "cpu"}'), "unknown module in device_map 'nothing'"),
        (("--max-memory", "cpu=1GB"), "max_memory is for a device_map"),
        (("--offload-folder", "there"), "offload_folder is for a device_map"),
        (("--quantization", "int7"), "allowed: int8, int4"),
    ]:
        status, _, error = run("explain", TEXT, *given)
        assert status == 2 and said in " ".join(error.split()), error
