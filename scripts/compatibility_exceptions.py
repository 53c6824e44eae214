"""Types that the survey's generic way to build models and inputs does not cover.

For each type: `config`, settings on top of the generic ones (a nested dict for a nested
configuration); `default`, settings that the default configuration needs; `head`, the class to take;
`length`, of the text; `inputs`, what to add to the generic inputs, given the model (`None` leaves
one out); `finish`, a last change to the configuration; `prepare`, to run before the model is built;
`note`, for the table; `softmax_by_hand`, for softmax attention that calls no softmax.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

ROWS, LENGTH = 2, 12
MLA = {"qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "qk_head_dim": 16, "v_head_dim": 8}
ROPE = {"rope_type": "default", "rope_theta": 1e4}
LLAMA_4_ROPE = {**ROPE, "original_max_position_embeddings": 8, "llama_4_scaling_beta": 0.1}
MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_expand": 2, "mamba_n_groups": 1}
STAGES = {"depths": [2, 1], "num_heads": [2, 4], "embed_dim": 16, "hidden_size": 32}
SWIN = {**STAGES, "patch_size": 4, "window_size": 4, "image_size": 32}
BLT = {"hidden_size_global": 32}
GEMMA3N = {
    "num_hidden_layers": 4,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "num_kv_shared_layers": 2,
    "intermediate_size": [64] * 4,
    "activation_sparsity_pattern": [0.0] * 4,
}
ASSISTANT = {
    "model_type": "gemma4_text",
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 0,
    "num_kv_shared_layers": 30,
}
# Layers that attend in a window have sizes of their own.
DOTS3 = {
    **{"swa_num_attention_heads": 4, "swa_num_key_value_heads": 4, "swa_q_lora_rank": 16},
    **{"swa_kv_lora_rank": 16, "swa_head_dim": 16, "swa_qk_nope_head_dim": 8, "swa_v_head_dim": 8},
    **{"num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "index_head_dim": 16},
    **{"qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "hidden_size": 32},
    **{"layer_types": ["indexed_attention", "sliding_attention"], "num_hidden_layers": 2},
}
MUSIC = {
    "text_encoder": {"model_type": "t5"},
    "audio_encoder": {"model_type": "encodec"},
    "decoder": {"model_type": "musicgen_decoder"},
}
INDEXER = {
    "indexer_n_heads": 2,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 8,
    "indexer_budget": 4,
    "indexer_compress_ratio": 2,
}


def random(*shape: int) -> Tensor:
    """Random numbers, the same ones each time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def boxes(_: Any) -> dict[str, Any]:
    """The place of each token on its page."""
    corners = torch.tensor([1, 2, 20, 30]) + torch.arange(LENGTH)[:, None]
    return {"bbox": corners.expand(ROWS, -1, -1)}


def fractional_boxes(_: Any) -> dict[str, Any]:
    """The corners of each token's box, as shares of the page."""
    return {"bbox": random(ROWS, LENGTH, 8).sigmoid()}


def objects(_: Any) -> dict[str, Any]:
    """Objects in a picture."""
    return {"visual_feats": random(ROWS, 5, 32), "visual_pos": random(ROWS, 5, 4).sigmoid()}


def patches(_: Any) -> dict[str, Any]:
    """A picture cut into sixteen patches."""
    return {
        "pixel_values": random(ROWS, 16, 3 * 8 * 8),
        "pixel_attention_mask": torch.ones(ROWS, 16, dtype=torch.long),
        "spatial_shapes": torch.full((ROWS, 2), 4),
    }


def codes(model: Any) -> dict[str, Any]:
    """A sentence for each codebook."""
    ids = torch.arange(ROWS * model.config.num_codebooks * LENGTH) * 7 % 90
    return {"input_ids": ids.reshape(-1, LENGTH), "attention_mask": None}


def shared_states(model: Any) -> dict[str, Any]:
    """The input of an assistant model, from the model that it assists."""
    states = {}
    for layer in model.model.layers:
        attention, kinds = layer.self_attn, model.config.get_text_config()
        heads = kinds.num_attention_heads // attention.num_key_value_groups
        shape = (ROWS, heads, LENGTH, attention.head_dim)
        states[attention.layer_type] = (random(*shape), random(*shape))
    return {
        "input_ids": None,
        "attention_mask": torch.ones(ROWS, LENGTH, dtype=torch.long),
        "position_ids": torch.full((ROWS, 1), LENGTH - 1),
        "inputs_embeds": random(ROWS, 1, 2 * model.config.backbone_hidden_size),
        "shared_kv_states": states,
    }


class PictureStandIn(nn.Module):
    """Replaces LayoutLMv2's convolutions, which come from detectron2."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(config.image_feature_pool_shape[:2])
        colours = SimpleNamespace(PIXEL_MEAN=[0.0] * 3, PIXEL_STD=[1.0] * 3)
        self.cfg = SimpleNamespace(MODEL=colours)
        self.pixel_mean = nn.Buffer(torch.zeros(3, 1, 1), persistent=False)
        self.pixel_std = nn.Buffer(torch.ones(3, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """A feature for each region: its mean colour."""
        return self.pool(images).flatten(start_dim=2).transpose(1, 2)


def without_detectron() -> None:
    """Make it possible to build LayoutLMv2 without detectron2."""
    from transformers.models.layoutlmv2 import modeling_layoutlmv2 as file

    file.LayoutLMv2VisualBackbone = PictureStandIn
    file.requires_backends = lambda *_: None
    layers = SimpleNamespace(FrozenBatchNorm2d=nn.Identity)
    file.detectron2 = SimpleNamespace(layers=layers)


def page(_: Any) -> dict[str, Any]:
    """The boxes of the tokens, and the picture of the page."""
    return {**boxes(_), "image": random(ROWS, 3, 32, 32)}


def without_timm(config: Any) -> None:
    """Give Gemma 3n another vision tower; the survey only uses its text."""
    from transformers import ViTConfig

    own, other = config.vision_config, ViTConfig(hidden_size=32, num_hidden_layers=1)
    for name in ("vocab_size", "vocab_offset", "rms_norm_eps"):
        setattr(other, name, getattr(own, name))
    vars(config)["vision_config"] = other


def large_picture(_: Any) -> dict[str, Any]:
    """A picture with more than one patch at the last stage."""
    return {"pixel_values": random(ROWS, 3, 128, 128)}


def sound(model: Any) -> dict[str, Any]:
    """As much sound as there is text."""
    frames = 2 * model.config.downsample_factor * LENGTH
    return {"input_features": random(ROWS, model.config.audio_config.num_mel_bins, frames)}


EXCEPTIONS: dict[str, dict[str, Any]] = {
    # Attention in blocks only starts if a text is longer than a few blocks.
    "big_bird": {"config": {"block_size": 4, "num_random_blocks": 1}, "length": 64},
    "bigbird_pegasus": {"config": {"block_size": 4, "num_random_blocks": 1}, "length": 64},
    "mra": {"softmax_by_hand": True},
    "reformer": {
        "config": {
            "axial_pos_embds_dim": [16, 16],
            "axial_pos_shape": [4, 4],
            "attn_layers": ["local", "lsh"],
            "num_buckets": 2,
            "lsh_attn_chunk_length": 4,
            "local_attn_chunk_length": 4,
            "is_decoder": False,
        },
        "length": 16,
        "softmax_by_hand": True,
    },
    # The returned maps leave out its prompt.
    "cpmant": {
        "config": {"prompt_length": 0, "prompt_types": 1},
        "note": "without prompt tokens",
    },
    "cohere_compass_text": {
        "config": {"rope_parameters": {"full_attention": {**ROPE, "mrope_section": [1, 1, 2]}}}
    },
    "deepseek_v2": {"config": {"num_experts_per_tok": 2}},
    "esm": {"config": {"vocab_size": 96, "pad_token_id": 1, "mask_token_id": 4}},
    "esmc": {"config": {"vocab_size": 96}},
    "gpt_neo": {"config": {"attention_types": [[["global", "local"], 1]]}},
    "gptj": {"config": {"rotary_dim": 4}},
    "codegen": {"config": {"rotary_dim": 4}},
    "jamba": {"config": {"attn_layer_period": 2, "attn_layer_offset": 1, "num_hidden_layers": 4}},
    "layoutlm": {"inputs": boxes},
    "layoutlmv2": {
        "config": {
            "coordinate_size": 6,
            "shape_size": 4,
            "image_feature_pool_shape": [2, 2, 3],
        },
        "prepare": without_detectron,
        "inputs": page,
        "note": "built without the convolutions it takes from detectron2",
    },
    "layoutlmv3": {
        "config": {"coordinate_size": 6, "shape_size": 4, "input_size": 32, "patch_size": 8},
        "inputs": boxes,
    },
    "lilt": {"config": {"hidden_size": 48, "num_attention_heads": 4}, "inputs": boxes},
    "bros": {"config": {"hidden_size": 64}, "inputs": fractional_boxes},
    "mistral4": {"config": {**MLA, "head_dim": 8, "rope_parameters": LLAMA_4_ROPE}},
    "longcat_flash": {"config": {**MLA, "moe_topk": 2}},
    "mobilebert": {
        "config": {"intra_bottleneck_size": 16, "embedding_size": 16, "true_hidden_size": 16}
    },
    "nemotron": {"config": {"num_key_value_heads": 2}},
    "perceiver": {
        "config": {
            "d_latents": 32,
            "num_latents": 6,
            "num_self_attends_per_block": 2,
            "num_self_attention_heads": 4,
            "num_cross_attention_heads": 4,
        },
        "inputs": lambda model: {"inputs": torch.arange(24).reshape(2, 12) + 6, "input_ids": None},
    },
    "xmod": {"config": {"languages": ["en_XX"], "default_language": "en_XX"}},
    "zamba": {
        "config": {
            "num_hidden_layers": 4,
            "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
            "attention_hidden_size": 64,
            "attention_head_dim": 16,
            "mamba_dt_rank": 4,
        }
    },
    "zamba2": {
        "config": {
            "num_hidden_layers": 4,
            "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
            "attention_hidden_size": 64,
            "attention_head_dim": 16,
            "kv_channels": 8,
            "num_query_groups": 4,
            "n_mamba_heads": 4,
            "mamba_headdim": 16,
            "hybrid_layer_ids": [1, 3],
        }
    },
    "lxmert": {
        "config": {"visual_feat_dim": 32, "l_layers": 2, "x_layers": 2, "r_layers": 2},
        "inputs": objects,
    },
    "neomme": {"config": {"head_dim": 16, "per_layer_config": None}},
    "bamba": {"config": {**MAMBA, "attn_layer_indices": [1]}},
    "granitemoehybrid": {
        "config": {**MAMBA, "layer_types": ["linear_attention", "full_attention"]},
    },
    "mamba2": {"config": {"num_heads": 4, "head_dim": 16, "n_groups": 1}},
    "nemotron_h": {"config": {"n_groups": 1}},
    "nemo_speechlm": {"config": {"text_config": {"n_groups": 1, "num_key_value_heads": 2}}},
    "recurrent_gemma": {"config": {"num_hidden_layers": 3, "lru_width": 32}},
    "dbrx": {
        "config": {
            "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8.0},
            "ffn_config": {"ffn_hidden_size": 64, "moe_num_experts": 4, "moe_top_k": 2},
        }
    },
    "dots1": {"config": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1}},
    "gemma3n_text": {"config": GEMMA3N},
    "gemma3n": {
        "config": {"text_config": GEMMA3N},
        "finish": without_timm,
        "note": "built without the vision tower it takes from timm",
    },
    "dots3_note_text": {"default": DOTS3, "config": DOTS3},
    "gemma4_assistant": {
        "default": {"text_config": ASSISTANT},
        "config": {"text_config": {**ASSISTANT, "num_kv_shared_layers": 2}},
        "inputs": shared_states,
    },
    "gemma4_unified_assistant": {
        "default": {"text_config": {"model_type": "gemma4_unified_text"}},
        "inputs": shared_states,
    },
    "minimax_m3_vl_text": {"config": {"layer_types": ["full_attention", "minimax_m3_sparse"]}},
    "falcon_h1": {"config": {"mamba_chunk_size": 8}},
    "lfm2_moe": {"config": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1}},
    "moshi": {"config": {"audio_encoder_config": {"codebook_size": 64}}},
    "musicgen": {"default": MUSIC, "inputs": codes},
    "musicgen_melody": {
        "default": {**MUSIC, "decoder": {"model_type": "musicgen_melody_decoder"}},
        "inputs": codes,
    },
    "qwen4_exp_text": {"config": INDEXER},
    "qwen4_exp": {"config": {"text_config": INDEXER}},
    "encoder-decoder": {
        "default": {"encoder": {"model_type": "bert"}, "decoder": {"model_type": "bert"}},
        "config": {"decoder": {"is_decoder": True, "add_cross_attention": True}},
    },
    # By default the model stops the gradient of all but its last cycles.
    "hrm_text": {
        "config": {"L_bp_cycles": [3, 3]},
        "note": "with gradients through all cycles, of which it cuts some by default",
    },
    # Their taggers have only encoders.
    "t5": {"head": "T5ForConditionalGeneration"},
    "mt5": {"head": "MT5ForConditionalGeneration"},
    "umt5": {"head": "UMT5ForConditionalGeneration"},
    # Their sequence classifiers return only the decoder's maps.
    "t5gemma": {"head": "T5GemmaForConditionalGeneration"},
    "t5gemma2": {"head": "T5Gemma2ForConditionalGeneration"},
    "blt": {
        "config": {
            "encoder_hash_byte_group_vocab": 100,
            "encoder_config": BLT,
            "decoder_config": BLT,
        },
        "inputs": lambda _: {"use_cache": False},
    },
    "vibevoice_asr": {
        "config": {
            "acoustic_tokenizer_encoder_config": {"num_filters": 2},
            "semantic_tokenizer_encoder_config": {"num_filters": 2},
        }
    },
    "voxtral_realtime": {"inputs": sound},
    "efficientnet": {
        "config": {"width_coefficient": 0.25, "depth_coefficient": 0.1, "hidden_dim": 320}
    },
    "mobilevit": {"config": {"image_size": 128, "hidden_sizes": [32, 40, 48], "patch_size": 2}},
    "mobilevitv2": {
        "config": {"image_size": 128, "patch_size": 2, "base_attn_unit_dims": [16, 24, 32]},
        "note": "a row for each place in a patch, over the patches",
    },
    "segformer": {"config": {"image_size": 128}, "inputs": large_picture},
    "shieldgemma2": {"config": {"yes_token_index": 7, "no_token_index": 8}},
    "siglip2": {"config": {"vision_config": {"num_patches": 16}}, "inputs": patches},
    "swin": {"config": SWIN},
    "swinv2": {"config": SWIN},
    "donut-swin": {"config": SWIN},
    "levit": {
        "config": {
            "image_size": 64,
            "hidden_sizes": [16, 24, 32],
            "num_attention_heads": [2, 3, 4],
            "depths": [1, 1, 1],
            "key_dim": [8, 8, 8],
            "down_ops": [["Subsample", 8, 2, 4, 2, 2], ["Subsample", 8, 3, 4, 2, 2]],
            "patch_size": 16,
        }
    },
    "xlstm": {
        "config": {"embedding_dim": 64, "hidden_size": 64, "num_heads": 4, "qk_dim_factor": 1.0}
    },
}


def without_prompt(seen: Tensor, returned: Tensor) -> Tensor:
    """CPM-Ant returns its maps without the prompt that it puts before the text."""
    prompt = seen.shape[-1] - returned.shape[-1]
    return seen[..., prompt:, prompt:]


def mean_of_heads(seen: Tensor, _returned: Tensor) -> Tensor:
    """WavLM returns the mean of its heads, once for each."""
    return seen.mean(1, keepdim=True).expand_as(seen)


def without_repeats(seen: Tensor, returned: Tensor) -> Tensor:
    """BigBird returns one of the weights of a block that a row sees several times.

    The sum of them, which mixed the values, is a whole multiple of that one.
    """
    times = seen / returned.clamp_min(torch.finfo(returned.dtype).tiny)
    return torch.where((times - times.round()).abs() < 1e-4 * times, returned, seen)


# What transformers returns where it is not the attention that mixed the values.
RETURNED = {
    "cpmant": without_prompt,
    "wavlm": mean_of_heads,
    "big_bird": without_repeats,
    "bigbird_pegasus": without_repeats,
}

# Softmaxes of the tests' models that mix no tokens, by family and class, and how many they are.
CTC = 1  # what a head or a middle layer predicts
CODES = 1  # which words of a visual vocabulary a patch is
SOFTMAXES_BESIDES = {
    "granite_speech": {
        "GraniteSpeechModel": CTC,
        "GraniteSpeechForConditionalGeneration": CTC,
    },
    "granite_speech_plus": {
        "GraniteSpeechPlusModel": CTC,
        "GraniteSpeechPlusForConditionalGeneration": CTC,
    },
    "ovis2": {"Ovis2Model": CODES, "Ovis2ForConditionalGeneration": CODES},
    "pp_ocrv5_mobile_rec": {"PPOCRV5MobileRecForTextRecognition": CTC},
    "pp_ocrv5_server_rec": {"PPOCRV5ServerRecForTextRecognition": CTC},
    "pp_ocrv6_small_rec": {"PPOCRV6SmallRecForTextRecognition": CTC},
    "esm": {"EsmForProteinFolding": 3},  # distances and two errors, in bins
    # Two softmaxes a layer, of the tokens and of the streams of next tokens, in one map.
    "prophetnet": {"ProphetNetModel": 4, "ProphetNetForConditionalGeneration": 4},
    # One of its two softmaxes a layer is thrown away.
    "sam2": {"Sam2VisionModel": 12, "Sam2Model": 12},
}

# Classes that let no gradient through somewhere, although the attention before that counts.
REVERSED = "its layers run without gradients, which only its training computes"
CUTS_GRADIENTS = {
    "EsmForProteinFolding": "its frozen language model runs without gradients",
    "CLIPSegForImageSegmentation": "its frozen encoders run without gradients",
    "GlmImageModel": "no gradient passes the codes of its picture",
    "GlmImageForConditionalGeneration": "no gradient passes the codes of its picture",
    "Emu3Model": "no gradient passes the codes of its picture",
    "Emu3ForConditionalGeneration": "no gradient passes the codes of its picture",
    "ClvpModelForConditionalGeneration": "no gradient passes the codes of its speech",
    "ReformerModel": REVERSED,
    "ReformerModelWithLMHead": REVERSED,
    "ReformerForQuestionAnswering": REVERSED,
    "ReformerForSequenceClassification": REVERSED,
}
