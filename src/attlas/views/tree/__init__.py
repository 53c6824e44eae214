"""How a tree looks."""
