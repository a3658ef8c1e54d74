"""Commands of ``python -m analytics``, each in a module with a function that adds its parser."""
