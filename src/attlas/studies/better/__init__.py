"""What the study of better attention trains and measures, its claims, and its tables."""
