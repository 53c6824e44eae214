"""Tables in files and in memory, and their rows as Examples."""
