#!/bin/sh
# Resolve the requirements for Python 3.11 to 3.13 on every platform; no index host is written down.
# All extras first: what the service pins, one of them may hold back (inspect-ai does python-dateutil).
set -eu
compile() {
    uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --quiet --upgrade "$@"
}
PATH=.venv/bin:$PATH
compile pyproject.toml --all-extras --output-file requirements-extra.txt
compile pyproject.toml --extra server --extra embedded --constraint requirements-extra.txt \
    --output-file requirements.txt
compile pyproject.toml --extra server --extra cluster --extra sentry --constraint requirements-extra.txt \
    --output-file requirements-image.txt
compile pyproject.toml --all-extras --group dev --constraint requirements-extra.txt --output-file requirements-dev.txt
compile --group build --output-file requirements-build.txt
