"""The models in the box: weights, the scripts that trained them, and checks of their promises."""
