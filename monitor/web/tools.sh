#!/bin/sh
# tools.sh SOURCE WORK: installs the packages of SOURCE's lock file into WORK. Without them it prints
# a message, and the tests that need them are skipped.
set -eu
source=$1 work=$2
mkdir -p "$work"
cp "$source/package.json" "$source/package-lock.json" "$work/"
cd "$work"
cmp -s package-lock.json node_modules/.lock-of-this && exit
if ! npm ci --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=30000 \
  --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 >npm.log 2>&1; then
  echo "the tools of the page's tests are not there: npm ci failed (is npm's registry reachable? see $work/npm.log)" >&2
  exit
fi
cp package-lock.json node_modules/.lock-of-this
