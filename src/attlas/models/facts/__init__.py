"""What a model is: its task, labels, sites and limits, found without asking it anything."""
