"""Sites: the kind of an attention comes from what it does, not from what its class takes."""

from transformers import PPFormulaNetConfig, PPFormulaNetForConditionalGeneration

from attlas.models.facts.sites import find_owners

VISION = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "mlp_dim": 8}
CONVOLUTIONS = {"output_channels": 8, "post_conv_in_channels": 8, "post_conv_mid_channels": 8}
TEXT = {"decoder_layers": 1, "decoder_ffn_dim": 8, "d_model": 16, "vocab_size": 20}


def test_a_decoder_of_text_is_no_vision_although_its_class_takes_pixels():
    vision = {**VISION, **CONVOLUTIONS, "post_conv_out_channels": 8, "decoder_hidden_size": 16}
    config = PPFormulaNetConfig(vision_config=vision, text_config=TEXT)
    owners = find_owners(PPFormulaNetForConditionalGeneration(config))
    kinds = {owner.path.split("layers.0.")[1]: owner.kind for owner in owners}
    assert kinds["attn"] == "vision"
    assert kinds["self_attn"] == "decoder"
