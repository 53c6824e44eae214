"""Models that learn again from texts without some of their tokens."""
