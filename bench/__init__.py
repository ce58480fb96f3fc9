"""Benchmarks: `python -m bench` runs them all, side by side with what they are measured against.

A case is a name: of a file in `bench/cases`, whose function `comparisons` yields what it compares, or of anything
registered, which is measured without a file. Where both exist, the case is both together.
"""
