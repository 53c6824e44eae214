"""The claims, tables and plots of studies, a file for each whose own would be too long."""
