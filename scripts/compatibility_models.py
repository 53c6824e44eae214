"""Small random models of any type, and inputs for them, by one generic routine.

It takes the default configuration, makes every size with a known name small, also in nested
configurations, and then applies the exceptions.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import torch
import transformers
from compatibility_exceptions import EXCEPTIONS
from torch import Tensor
from transformers import PretrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

TABLES = (
    "SEQUENCE_CLASSIFICATION",
    "TOKEN_CLASSIFICATION",
    "QUESTION_ANSWERING",
    "MASKED_LM",
    "CAUSAL_LM",
    "SEQ_TO_SEQ_CAUSAL_LM",
    "IMAGE_CLASSIFICATION",
)
ROWS, LENGTH, TARGET_LENGTH, VOCABULARY, FIRST_ORDINARY_ID = 2, 12, 7, 96, 6
SPREAD = 0.3
# A layer with its norm last makes all tokens alike if it adds more than was there before.
WRITERS = ("out_proj.weight", "fc2.weight", "output.dense.weight", "o_proj.weight")

# Patterns for the whole name of a size, and its new value. The first match counts; only numbers
# (and lists of them) larger than the new value change.
SIZES: tuple[tuple[str, int], ...] = (
    (r".*vocab_size|vocab_size_.*|.*codebook_size|audio_vocab.*", VOCABULARY),
    (r"image_size|img_size|input_size|pretrain_img_size", 32),
    (r"patch_size|patch_stride", 8),
    (r"max_position_embeddings|n_positions|max_.*_positions|max_seq_len|max_seq_length", 64),
    (r"(n_)?(num_)?hidden_layers|num_layers|n_layers?|depth|.*_num_hidden_layers", 2),
    (r"(num_)?(encoder|decoder|text|prediction|audio|vision)_layers|.*num_layers|layers", 2),
    (r".*(num_key_value_heads|num_kv_heads|n_kv_heads|key_value_heads)", 2),
    (r".*(attention_heads|num_heads|n_heads?|attn_heads|heads|num_head|.*_n_heads)", 4),
    (r".*(head_dim|d_kv|d_head|attention_head_size|dim_head|head_size|key_dim|value_dim)", 8),
    (r"(num_|n_)?(local_|routed_|moe_)?(num_)?experts|.*num_experts|.*routed_experts", 4),
    (r"index_topk|.*indexer?_top_?k", 4),
    (r"index_topk_blocks|index_block_size", 2),
    (r"num_experts_per_tok.*|.*top_k.*|moe_k|num_selected_experts|.*experts_per_tok", 2),
    (r"n_group|topk_group|num_expert_groups?|.*zero_expert_num", 1),
    (r"q_lora_rank|kv_lora_rank|.*lora_rank|.*_rank", 16),
    (r".*(intermediate_size|ffn_dim|d_ff|ffn_hidden_size|mlp_dim|d_inner|n_inner|hidden_dim)", 64),
    (r".*(inner_dim|ffn_size|feedforward_dim|linear_dim)|ffn_dim_.*", 64),
    (r".*(hidden_size|d_model|n_embd|embed_dim|emb_dim|embedding_size|proj_dim)|dim", 32),
    (r".*(projection_dim|embedding_dim|output_dim|hidden_channels|_hidden_size.*)|width", 32),
    (r".*(sliding_window|local_attention|window_size|attention_window|window)", 4),
    (r".*(n_mels|num_mel_bins|feature_dim|input_feat.*)", 16),
)
TOKEN = re.compile(r".*(token_id|token_index|token_ids|_id)$")


def heads(kind: str) -> list[tuple[str, str]]:
    """The head classes of a type, table by table."""
    found: dict[str, str] = {}
    chosen = EXCEPTIONS.get(kind, {}).get("head")
    for table in TABLES:
        entry = getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES").get(kind)
        for name in (entry,) if isinstance(entry, str) else (entry or ()):
            found.setdefault(name, table)
    return [(name, table) for name, table in found.items() if chosen in (None, name)]


def kinds() -> list[str]:
    """Every type in the tables."""
    found: dict[str, None] = {}
    for table in TABLES:
        found.update(dict.fromkeys(getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES")))
    return list(found)


def small_config(kind: str) -> PretrainedConfig:
    """The configuration of a type with every size in it made small."""
    config_class = CONFIG_MAPPING[kind]
    exception = deepcopy(EXCEPTIONS.get(kind, {}))  # configurations remove entries from it
    default = config_class(**exception.get("default", {}))
    config = config_class(**merge(shrink(default), exception.get("config", {})))
    exception.get("finish", lambda _: None)(config)
    return config


def shrink(config: PretrainedConfig) -> dict[str, Any]:
    """The settings that make a configuration small, with those of nested configurations."""
    kept = _kept_layers(config)
    settings: dict[str, Any] = {}
    values = {key: value for key, value in vars(config).items() if not key.startswith("_")}
    for name, value in values.items():
        if isinstance(value, PretrainedConfig):
            settings[name] = {"model_type": value.model_type, **shrink(value)}
        else:
            new = _smaller(name, value, kept, getattr(config, "num_hidden_layers", None))
            if new is not value:
                settings[name] = new
    if "pad_token_id" in values and values["pad_token_id"] is None:
        settings["pad_token_id"] = 1
    if values.get("head_dim", 0) is None:
        settings["head_dim"] = 8
    if values.get("num_key_value_heads") == values.get("num_attention_heads"):
        settings.pop("num_key_value_heads", None)
        if "num_attention_heads" in settings and "num_key_value_heads" in values:
            settings["num_key_value_heads"] = settings["num_attention_heads"]
    if kept is not None:
        settings["num_hidden_layers"] = len(kept)
    return settings


def merge(settings: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The settings, updated with others, also nested ones."""
    merged = dict(settings)
    for name, value in other.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = merge(merged[name], value) if both else value
    return merged


def _kept_layers(config: Any) -> list[int] | None:
    """The first layer of each type, and at least two; None if all layers are alike."""
    types = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None)
    layers = getattr(config, "num_hidden_layers", None)
    if not types or len(types) != layers:
        return None
    kept = sorted({types.index(each) for each in types})
    return kept if len(kept) > 1 else list(range(min(2, layers)))


def _smaller(name: str, value: Any, kept: list[int] | None, layers: int | None) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
        return value
    if TOKEN.fullmatch(name):
        return _small_token(value)
    if isinstance(value, (list, tuple)) and kept is not None and len(value) == layers:
        return [_smaller_size(name, value[index]) for index in kept]
    if name in ("depths", "num_blocks", "layers_per_stage") and isinstance(value, (list, tuple)):
        return [1] * len(value)
    if isinstance(value, int) and "max_window_layers" not in name:
        return _smaller_size(name, value)
    return value


def _smaller_size(name: str, value: Any) -> Any:
    for pattern, size in SIZES:
        if isinstance(value, int) and re.fullmatch(pattern, name):
            return min(value, size) if value > 0 else value
    return value


def _small_token(value: Any) -> Any:
    if isinstance(value, int):
        return value if value < VOCABULARY else value % 5 + 1
    if isinstance(value, (list, tuple)) and all(isinstance(each, int) for each in value):
        return [_small_token(each) for each in value]
    return value


def build(kind: str, head: str, seed: int = 0) -> PreTrainedModel:
    """A small random model of a type, in eval mode, with its default implementation."""
    model_class = getattr(transformers, head)
    exception = EXCEPTIONS.get(kind, {})
    exception.get("prepare", lambda: None)()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = small_config(kind)
        if not isinstance(config, model_class.config_class):
            inner = vars(config).values()
            # Without one inside, a type of its own uses the class of another.
            config = next((e for e in inner if isinstance(e, model_class.config_class)), config)
        with torch.device("meta"):
            size = sum(each.numel() for each in model_class(deepcopy(config)).parameters())
        if size > 20_000_000:
            raise ValueError(f"{size} parameters: not small")
        model = model_class(config)
        widen(model, exception.get("spread", SPREAD))
    return model.eval()


@torch.no_grad()
def widen(model: PreTrainedModel, spread: float) -> None:
    """Redraw the matrices with a wide spread, and add noise to the vectors."""
    for name, parameter in model.named_parameters():
        # Sinusoidal position tables are frozen parameters, and a scalar is a temperature.
        if not parameter.requires_grad or parameter.dim() == 0 or not parameter.is_floating_point():
            continue
        if name.endswith("sinks"):
            parameter.normal_(0.0, 1.0)
        elif re.search(r"(q|k|query|key)_(layer)?norm", name):
            # A norm on queries and keys determines the size of the scores, whatever the spread.
            parameter.normal_(1.6, 0.1)
        elif parameter.dim() == 1 or "A_log" in name:
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
        elif name.endswith(WRITERS):
            parameter.normal_(0.0, spread / 3)
        else:
            parameter.normal_(0.0, spread)


def feed(model: PreTrainedModel, kind: str) -> dict[str, Any]:
    """An input for a model: two texts or two pictures."""
    exception = EXCEPTIONS.get(kind, {})
    config = model.config
    inputs: dict[str, Any] = {}
    if model.main_input_name == "pixel_values":
        inputs["pixel_values"] = pixels(config)
    else:
        ids = token_ids(exception.get("length", LENGTH), 1)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = token_ids(TARGET_LENGTH, 2)
    more = exception.get("inputs", {})
    inputs |= more(model) if callable(more) else more
    return {name: value for name, value in inputs.items() if value is not None}


def token_ids(length: int, seed: int) -> Tensor:
    """Rows of ids, none of them special."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(FIRST_ORDINARY_ID, VOCABULARY, (ROWS, length), generator=generator)


def pixels(config: Any, size: int | None = None) -> Tensor:
    """Pictures of the size in a configuration."""
    for part in (config, getattr(config, "vision_config", None)):
        size = size or getattr(part, "image_size", None)
        channels = getattr(part, "num_channels", 3)
    sides = size if isinstance(size, (list, tuple)) else (size or 32, size or 32)
    generator = torch.Generator().manual_seed(3)
    return torch.randn(ROWS, channels, *sides, generator=generator)
