"""Facts about a model: its task, labels, attention sites and limits."""
