#!/bin/sh
# system.sh: what the image needs of Debian: the programs of `backup` and `restore`, and an account that owns nothing.
set -eu
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql-client > /dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/*
useradd --system --uid 10001 --user-group --home-dir /nonexistent --shell /usr/sbin/nologin bandstand
