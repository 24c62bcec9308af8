"""Shared by every room: errors, parameters, random numbers, files, intervals, figures, progress."""
