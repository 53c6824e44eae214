"""Tables in files, and records in memory."""
