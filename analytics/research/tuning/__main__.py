"""Run the command line: ``python -m analytics.research.tuning``."""

from analytics.programs import begin_command

if __name__ == "__main__":
    begin_command()
    from analytics.research.tuning.cli import main

    raise SystemExit(main())
