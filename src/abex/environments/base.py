"""Moved to `abex.environments.environment`."""

from abex.deprecation import moved

__getattr__ = moved(__name__, "abex.environments.environment")
