"""Changes to a model beyond its attention weights: outputs, keys, heads, weights."""
