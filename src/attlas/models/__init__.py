"""The only room that touches a model: loading, encoding, asking, and opening it at its attention."""
