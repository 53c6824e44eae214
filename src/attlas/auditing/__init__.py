"""The audit: methods held to measures over a data set, and the verdict on what they reached."""
