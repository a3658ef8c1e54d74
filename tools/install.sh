#!/bin/sh
# install.sh PYTHON LOCK STAMP: make .venv hold what LOCK pins; uv where it can be had, else pip.
set -eu
python=$1 lock=$2 stamp=$3

"$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || {
    echo "Bandstand needs Python 3.11, 3.12 or 3.13; $python is $("$python" --version 2>&1). Choose another with PYTHON=." >&2
    exit 1
}
hash=$("$python" -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$lock")
if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$hash" ]; then
    touch "$stamp"
    exit 0
fi
[ -x .venv/bin/python ] || "$python" -m venv .venv || {
    echo "The interpreter cannot make a virtual environment (on Debian: apt-get install python3-venv)." >&2
    exit 1
}
echo "Installing $lock into .venv"
uv=$(command -v uv || true)
if [ -z "$uv" ]; then
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-build.txt \
        && uv=.venv/bin/uv || echo "uv is not to be had here; going on with pip." >&2
fi
if [ -n "$uv" ]; then
    "$uv" pip install --quiet --python .venv/bin/python --require-hashes -r "$lock"
else
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
fi
echo "$hash" > "$stamp"
