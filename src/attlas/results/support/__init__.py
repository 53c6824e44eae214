"""What results share: their base class, files, words, plots, and the sections of a report."""
