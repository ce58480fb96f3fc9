"""One file for each case; its function `comparisons` yields what is compared."""
