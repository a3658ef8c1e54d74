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
$uv install --quiet --python "$target/bin/python" --require-hashes -r "$source/requirements-image.txt"

# Left out, which nobody calls here: what libraries test themselves with; what is compiled against them; catalogues of
# translations (USE_I18N is off); Arrow's remote calls and S3, and copies of its own library under names that only
# compilers ask for; ReDoc (the interface is shown by Swagger); zstandard for interpreters other than CPython.
(
    cd "$target"/lib/python3*/site-packages
    for library in numpy scipy pandas sklearn pyarrow dask distributed joblib toolz; do
        find "$library" -type d \( -name tests -o -name test -o -name include \) -prune -exec rm -rf {} +
        find "$library" -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cc' -o -name '*.a' -o -name '*.tp' \
            -o -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.pyi' \) -delete
    done
    find . -type d -name LC_MESSAGES -prune -exec rm -rf {} +
    rm -f pyarrow/*flight* pyarrow/*_s3* pyarrow/_pyarrow_cpp_tests* pyarrow/libarrow_python*.so pyarrow/lib*.so.*.*.*
    rm -rf drf_spectacular_sidecar/static/drf_spectacular_sidecar/redoc zstandard/_cffi*
)

$uv install --quiet --python "$target/bin/python" --no-deps --offline "$work"/bandstand-*.whl
$uv check --quiet --python "$target/bin/python"
"$target/bin/python" -m compileall -q -j 0 "$target/lib" || echo "What is named above is compiled when it is imported." >&2
install -m 755 "$source/deploy/entrypoint.sh" "$target/bin/bandstand-entrypoint"
