#!/bin/sh
# build.sh SOURCE WORK OUT: builds the page of SOURCE in WORK, so that the source tree is unchanged,
# and copies it to OUT. Without the packages it prints a message, and fails only if SCORED_WEB=on.
set -eu
source=$1 work=$2 out=$3
mkdir -p "$work"
cp -r "$source/src" "$source/build.mjs" "$source/package.json" "$source/package-lock.json" "$source/tsconfig.json" "$work/"
cd "$work"
if ! cmp -s package-lock.json node_modules/.lock-of-this; then
  if ! npm ci --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=30000 \
    --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 >npm.log 2>&1; then
    echo "dashboard's page not built: npm ci failed (is npm's registry reachable? see $work/npm.log)" >&2
    [ "${SCORED_WEB:-auto}" = on ] && exit 1
    exit 0
  fi
  cp package-lock.json node_modules/.lock-of-this
fi
npm run --silent check
node build.mjs "$out"
