#!/bin/sh
# What a container does, by its first argument; everything else is a command of bandstand-server.
# `exec` throughout: SIGTERM reaches the program itself.
set -eu
PATH=$(dirname "$0"):$PATH
port=${PORT:-8000}

case ${1:-web} in
release) # once for each release, before anything else of it starts
    bandstand-server check --deploy
    exec bandstand-server migrate --no-input
    ;;
web) exec gunicorn --config python:leaderboard.serving --bind "${BIND:-0.0.0.0}:$port" ;;
cluster) exec dask scheduler --host "${BIND:-0.0.0.0}" --port "${PORT:-8786}" --no-dashboard ;;
worker) exec dask worker "$DASK_SCHEDULER_ADDRESS" --nworkers 1 --nthreads 1 --no-dashboard --local-directory /tmp ;;
probe) # probe PATH: what this machine's web process says, for a health check
    exec python -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode())' \
        "http://127.0.0.1:$port$2"
    ;;
*) exec bandstand-server "$@" ;;
esac
