"""What results share: saving, showing, words, plots."""
