"""The things that an operator can do, by subject."""
