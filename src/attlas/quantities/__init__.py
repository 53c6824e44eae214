"""Mathematics that the workshops share."""
