#!/bin/sh
# run_spin.sh MODEL VARIANT DIRECTORY
# Checks the Promela model exhaustively. VARIANT "repaired" must have no error; any other is passed
# as a macro that puts one published rule back, and must have a counterexample. Exit 77 = skipped.
set -eu
model=$1 variant=$2 directory=$3
if ! command -v spin >/dev/null; then
  echo "skipped: spin is not installed"
  exit 77
fi
mkdir -p "$directory"
cd "$directory"
flag=
[ "$variant" = repaired ] || flag=-D$variant
spin $flag -a "$model" >/dev/null
cc -O2 -w -o pan pan.c
found=$(./pan -a -f -m100000)
echo "$found" | grep -E 'errors:|states, stored'
if [ "$variant" = repaired ]; then
  echo "$found" | grep -q 'errors: 0'
else
  echo "$found" | grep -q 'errors: 1'
fi
