"""Hidden states: the vectors that tokens enter as, and what the blocks make of them."""
