"""Rows of attention, computed again from what each attention was handed; never a whole map."""
