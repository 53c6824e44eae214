"""Jobs: long work in processes of its own, kept in a file across restarts."""
