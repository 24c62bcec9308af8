"""Feedback graphs: who is seen when an arm is pulled."""
