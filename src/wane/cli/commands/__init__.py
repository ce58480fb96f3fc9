"""One file for each command; its function `command` is what the command line runs."""
