"""How a model was brought here: its wrappers, its devices, its weights elsewhere or in few bits."""
