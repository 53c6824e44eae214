"""What attribution says of heads, of how a prediction came together, and of what misleads it."""
