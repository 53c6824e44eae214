"""Methods: each takes a Question and gives a score for each token."""

from attlas.methods.alti import alti
from attlas.methods.attattr import attattr
from attlas.methods.attention_flow import attention_flow
from attlas.methods.attention_rollout import attention_rollout
from attlas.methods.attn_lrp import attn_lrp
from attlas.methods.decompx import decompx
from attlas.methods.effective_attention import effective_attention
from attlas.methods.generic_relevance import generic_relevance
from attlas.methods.globenc import globenc
from attlas.methods.gradient import gradient
from attlas.methods.gradient_attention import gradient_attention
from attlas.methods.hidden_token_attribution import hidden_token_attribution
from attlas.methods.input_x_gradient import input_x_gradient
from attlas.methods.integrated_gradients import integrated_gradients
from attlas.methods.kernel_shap import kernel_shap
from attlas.methods.leave_one_out import leave_one_out
from attlas.methods.lime import lime
from attlas.methods.lrp_relevance import lrp_relevance
from attlas.methods.random_scores import random_scores
from attlas.methods.raw_attention import raw_attention
from attlas.methods.support.method import FAMILIES, METHODS, Method, Scored
from attlas.methods.value_weighted_attention import value_weighted_attention
from attlas.methods.value_zeroing import value_zeroing

__all__ = [
    "FAMILIES",
    "METHODS",
    "Method",
    "Scored",
    "alti",
    "attattr",
    "attention_flow",
    "attention_rollout",
    "attn_lrp",
    "decompx",
    "effective_attention",
    "generic_relevance",
    "globenc",
    "gradient",
    "gradient_attention",
    "hidden_token_attribution",
    "input_x_gradient",
    "integrated_gradients",
    "kernel_shap",
    "leave_one_out",
    "lime",
    "lrp_relevance",
    "random_scores",
    "raw_attention",
    "value_weighted_attention",
    "value_zeroing",
]
