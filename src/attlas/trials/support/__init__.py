"""What trials share."""
