"""Hidden states: the vectors with which tokens enter, and the inputs and outputs of the blocks."""
