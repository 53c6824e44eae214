"""What objectives share: what they are handed, how they are named, and how they read attention."""
