"""Slow, obvious versions of what the package computes: the oracles of the tests."""
