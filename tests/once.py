"""What several answers have in common, computed once."""

from importlib import import_module


def once(monkeypatch, where):
    """Let a function compute at its first call alone, and answer the same from then on."""
    module, name = where.rsplit(".", 1)
    original, answers = getattr(import_module(module), name), []

    def call(*arguments, **options):
        if not answers:
            answers.append(original(*arguments, **options))
        return answers[0]

    monkeypatch.setattr(where, call)
