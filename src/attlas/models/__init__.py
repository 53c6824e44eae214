"""The only room that touches a model: loading, encoding, asking, opening it at its attention."""
