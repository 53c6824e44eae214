"""The verb `audit`: methods tested by measures over a data set, with a verdict and a report."""
