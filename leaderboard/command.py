"""The operators' command line: `bandstand-server` where the wheel is installed, manage.py in a checkout."""

import atexit
import errno
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from leaderboard import called, postgres

WITHOUT_DATABASE = {"check", "collectstatic", "help", "makemigrations", "version"}
STORE = "bandstand-site-"  # what folders of databases that last for one command begin with
A_MINUTE = 60
READER_GONE = 128 + signal.SIGPIPE
INTERRUPTED = 128 + signal.SIGINT


def needs_database(arguments: list[str]) -> bool:
    return (
        bool(arguments)
        and arguments[0] not in WITHOUT_DATABASE
        and not {"-h", "--help", "--version"} & set(arguments)
    )


def main() -> None:
    if find_spec("django") is None:
        sys.exit("bandstand-server needs the extra `server`. In a checkout run: pip install '.[server]'")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
    # Commands multiply many small matrices, where a second thread of BLAS costs more than it saves.
    #: OPENBLAS_NUM_THREADS | 1 in commands | threads of one matrix multiplication
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        from leaderboard.studies.answers import begin_command

        begin_command()
        run(sys.argv)
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough. What stood behind the print may not have been done,
        # so that this is no success; the shell's own status for it is 141.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_GONE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def run(arguments: list[str]) -> None:
    """Run one command; told to end by SIGTERM it rolls back, closes what is open, and exits with 143."""
    from leaderboard.studies.answers import orderly_end

    check_text(arguments)
    with orderly_end():
        _execute(arguments)


def check_text(arguments: list[str]) -> None:
    for argument in arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument) and not os.path.exists(argument):
            sys.exit(f"The argument {argument!r} is not UTF-8 text. Type it again as UTF-8.")


def use_store_of_its_own() -> None:
    """Work on an embedded server whose folder goes when this process ends."""
    called.is_site_of_file = True
    os.environ.pop("DATABASE_URL", None)
    for left in Path(gettempdir()).glob(f"{STORE}*"):  # of a process that was killed
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > A_MINUTE:  # younger ones may only begin
                postgres.remove_unused(left)
    os.environ["BANDSTAND_HOME"] = folder = mkdtemp(prefix=STORE)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after the server was stopped: in reverse


def _execute(arguments: list[str]) -> None:
    if arguments[1:2] == ["site"] and any(map(os.path.isfile, arguments[2:])):
        use_store_of_its_own()
    if needs_database(arguments[1:]):
        try:
            postgres.ensure()
        except postgres.EmbeddedPostgresError as error:
            sys.exit(f"{error}")

    from django.core.exceptions import ImproperlyConfigured
    from django.db import DatabaseError

    from leaderboard.errors import of_database
    from leaderboard.terminal.help import CommandLine

    try:
        CommandLine(arguments).execute()
    except DatabaseError as error:  # of a command that is Django's own
        if not (why := of_database(error)):
            raise
        sys.exit(why)
    except ImproperlyConfigured as error:
        sys.exit(f"{error}")
    except OSError as error:
        if not error.filename and error.errno != errno.ENOSPC:
            raise
        sys.exit(": ".join(filter(None, (error.filename and str(error.filename), error.strerror))))
    except MemoryError:
        sys.exit("Out of memory. Nothing of this step was stored. Try again with more memory or less data.")
    finally:
        sys.stdout.flush()


if __name__ == "__main__":
    main()
