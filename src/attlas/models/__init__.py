"""The only room that touches a model: it loads it, feeds it, runs it and opens its attention."""
