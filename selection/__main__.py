"""Run the command line: ``python -m selection``."""

from analytics.programs import begin_command

if __name__ == "__main__":
    begin_command()
    from selection.cli import main

    raise SystemExit(main())
