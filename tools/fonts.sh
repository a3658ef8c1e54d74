#!/bin/sh
# Fetches the one serif that pages ship, Source Serif 4 (OFL), at the version that is pinned here, into static/fonts.
set -eu
package=@fontsource-variable/source-serif-4@5.3.1
archive=8c452853c74be1e43e9fbfe76321c26f4678a2d431e93209ff1d9faec03fd96f
font=382475f38242c52d42a3e5ff8dc69b5d73f10d0d21e4550b5fe232984688779a

here=$(cd "$(dirname "$0")/.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm pack --silent "$package" > /dev/null
mv ./*.tgz font.tgz
echo "$archive  font.tgz" | sha256sum --check --quiet
tar xzf font.tgz
echo "$font  package/files/source-serif-4-latin-wght-normal.woff2" | sha256sum --check --quiet
cp package/files/source-serif-4-latin-wght-normal.woff2 "$here/static/fonts/source-serif-4.woff2"
cp package/LICENSE "$here/static/fonts/OFL.txt"
