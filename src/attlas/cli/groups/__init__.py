"""Groups of options that one command takes, each with what is done with them."""
