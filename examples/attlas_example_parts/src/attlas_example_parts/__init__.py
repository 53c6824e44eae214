"""A method, a measure and a trial that Attlas finds by entry points."""
