"""Simulations of the methods themselves: how they behave where the truth is known."""
