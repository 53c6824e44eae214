"""Methods: each takes a Question and gives a score for each token."""

from attlas.methods.attention_rollout import attention_rollout
from attlas.methods.gradient_attention import gradient_attention
from attlas.methods.leave_one_out import leave_one_out
from attlas.methods.method import FAMILIES, METHODS, Method, Scored
from attlas.methods.random_scores import random_scores
from attlas.methods.raw_attention import raw_attention

__all__ = [
    "FAMILIES",
    "METHODS",
    "Method",
    "Scored",
    "attention_rollout",
    "gradient_attention",
    "leave_one_out",
    "random_scores",
    "raw_attention",
]
