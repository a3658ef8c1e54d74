"""Run the command line: ``python -m analytics.research``."""

from analytics.programs import begin_command

if __name__ == "__main__":
    begin_command()
    from analytics.research.cli import main

    raise SystemExit(main())
