"""What each model in the box promises, measured."""
