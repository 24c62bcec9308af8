"""The laboratory: the paper's experiments and comparisons of policies, beside the library that applications use.

No other room imports it, but the commands.
"""
