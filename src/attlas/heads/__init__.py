"""What single heads contribute, what happens without them, and what their attribution shows."""
