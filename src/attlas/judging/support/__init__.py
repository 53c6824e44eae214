"""Helpers of `judge`: explanations read and aligned with tokens, and the measures applied."""
