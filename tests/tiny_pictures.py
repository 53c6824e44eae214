"""Tiny models that write about pictures which are no patches of their text, and processors."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import tiny
import transformers
from tiny import IMAGE, SIZES, TOWER
from transformers import PreTrainedModel

IDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
LAYERS = {"intermediate_size": 64, "max_position_embeddings": 128}


def _words(mark: str) -> tuple[Any, int]:
    """A tokenizer with a token that stands for a picture, and the id of that token."""
    words = deepcopy(tiny.tokenizer("bpe"))
    words.add_special_tokens({"additional_special_tokens": [mark]})
    return words, words.convert_tokens_to_ids(mark)


def _side() -> dict[str, int]:
    return {"height": IMAGE["image_size"], "width": IMAGE["image_size"]}


def mllama() -> tuple[PreTrainedModel, Any]:
    """A language model of three layers; the second reads two tiles of 4 × 4 patches across."""
    words, mark = _words("<|image|>")
    text = {**SIZES, **LAYERS, **IDS, "vocab_size": mark, "num_hidden_layers": 3}
    text |= {"cross_attention_layers": [1], "num_key_value_heads": 2}
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e4}
    vision = {**TOWER, **IMAGE, "num_global_layers": 1, "attention_heads": 4}
    vision |= {"intermediate_layers_indices": [0], "vision_output_dim": 64}
    vision |= {"max_num_tiles": 2, "supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]]}
    settings = {"text_config": text, "vision_config": vision, "image_token_index": mark}
    pictures = transformers.MllamaImageProcessorPil(size=_side(), max_image_tiles=2)
    model = tiny.build("Mllama", "ForConditionalGeneration", settings)
    return model, transformers.MllamaProcessor(pictures, words)


def idefics() -> tuple[PreTrainedModel, Any]:
    """A language model of two layers, each after one that reads 4 × 4 patches across."""
    words = deepcopy(tiny.tokenizer("bpe"))
    words.add_special_tokens(
        {"additional_special_tokens": ["<image>", "<fake_token_around_image>"]}
    )
    settings = {**SIZES, **LAYERS, **IDS, "vocab_size": len(words), "cross_layer_interval": 1}
    settings |= {"alpha_initializer": "ones", "additional_vocab_size": 0, "use_resampler": False}
    vision = {**IMAGE, "embed_dim": 32, "num_attention_heads": 4, "num_hidden_layers": 1}
    settings["vision_config"] = {**vision, "intermediate_size": 64}
    pictures = transformers.IdeficsImageProcessorPil(image_size=IMAGE["image_size"])
    model = tiny.build("Idefics", "ForVisionText2Text", settings)
    return model, transformers.IdeficsProcessor(pictures, words, image_size=IMAGE["image_size"])


def florence() -> tuple[PreTrainedModel, Any]:
    """An encoder–decoder whose encoder reads a mean, 2 × 2 patches and words."""
    words, mark = _words("<image>")
    words.image_token, words.image_token_id = "<image>", mark
    text = {**IDS, "model_type": "bart", "vocab_size": len(words), "d_model": 32}
    text |= {
        "max_position_embeddings": 128,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
    }
    for side in ("encoder", "decoder"):
        text |= {f"{side}_layers": 1, f"{side}_ffn_dim": 64, f"{side}_attention_heads": 4}
    vision = {"depths": [1], "patch_size": [7], "patch_stride": [4], "patch_padding": [3]}
    vision |= {"patch_prenorm": [False], "embed_dim": [32], "num_heads": [4], "num_groups": [4]}
    vision |= {"window_size": 2, "projection_dim": 32}
    settings = {"text_config": text, "vision_config": vision, "image_token_id": mark, **IDS}
    size = {"height": 8, "width": 8}
    pictures = transformers.CLIPImageProcessorPil(size=size, crop_size=size)
    pictures.image_seq_length = 5
    model = tiny.build("Florence2", "ForConditionalGeneration", settings)
    return model, transformers.Florence2Processor(pictures, words)


def blip(**settings: Any) -> tuple[PreTrainedModel, Any]:
    """A language model that reads the four vectors of a Q-Former before its words."""
    words, mark = _words("<image>")
    text = {**IDS, "model_type": "opt", "vocab_size": len(words), "hidden_size": 32}
    text |= {"num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64}
    text |= {"max_position_embeddings": 128, "word_embed_proj_dim": 32}
    queries = {**SIZES, "vocab_size": 99, "intermediate_size": 64, "encoder_hidden_size": 32}
    shape = {"text_config": text, "vision_config": {**TOWER, **IMAGE}, "qformer_config": queries}
    shape |= {"num_query_tokens": 4, "image_token_index": mark}
    pictures = transformers.BlipImageProcessorPil(size=_side())
    model = tiny.build("Blip2", "ForConditionalGeneration", {**shape, **settings})
    return model, transformers.Blip2Processor(pictures, words, num_query_tokens=4)


def kosmos() -> tuple[PreTrainedModel, Any]:
    """A language model that reads the four vectors of a picture where a mask says so."""
    words = deepcopy(tiny.tokenizer("bpe"))
    words.model_max_length = 256
    pictures = transformers.CLIPImageProcessorPil(size=_side(), crop_size=_side())
    processor = transformers.Kosmos2Processor(pictures, words, num_patch_index_tokens=4)
    text = {**IDS, "vocab_size": len(processor.tokenizer), "embed_dim": 32, "ffn_dim": 64}
    text |= {"layers": 2, "attention_heads": 4, "max_position_embeddings": 256}
    settings = {"text_config": text, "vision_config": {**TOWER, **IMAGE}, "latent_query_num": 64}
    return tiny.build("Kosmos2", "ForConditionalGeneration", settings), processor
