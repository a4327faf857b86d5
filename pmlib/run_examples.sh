#!/bin/sh
# run_examples.sh DIRECTORY: runs the example programs of PM, each with its ranks as processes over
# shared memory and over UDP. Ends with 0 if all say what they should.
set -eu
bin=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# job DEVICE RANKS: an address file
job() {
  echo "key $(od -An -N7 -tx8 /dev/urandom | tr -d ' ')"
  if [ "$1" = shmem ]; then echo "device none"; echo "shmem $work/context"; else echo "device $1"; fi
  rank=0
  while [ "$rank" -lt "$2" ]; do
    echo "rank $rank host 127.0.0.1:$((10000 + $$ % 2000 * 10 + rank))"
    rank=$((rank + 1))
  done
}

# run DEVICE RANKS PROGRAM ARGUMENT...
run() {
  device=$1 ranks=$2
  shift 2
  job "$device" "$ranks" >"$work/job"
  rank=1
  while [ "$rank" -lt "$ranks" ]; do
    PM_ADDRESS_FILE=$work/job PM_RANK=$rank timeout 600 "$@" &
    rank=$((rank + 1))
  done
  PM_ADDRESS_FILE=$work/job PM_RANK=0 timeout 600 "$@"
  wait
}

for device in shmem udp; do
  run "$device" 3 "$bin/pm_queens" 8 | grep -q '8 queens on 3 ranks: 92 solutions'
  run "$device" 2 "$bin/pm_pingpong" 200 100 | grep -q '100 bytes: .* us per round trip'
done
