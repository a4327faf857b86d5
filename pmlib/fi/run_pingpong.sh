#!/bin/sh
# run_pingpong.sh DIRECTORY: checks that libfabric's own fi_info and fi_pingpong find and use the provider there.
# Exits with 77 if they are not installed (package libfabric-bin).
set -eu
command -v fi_pingpong > /dev/null && command -v fi_info > /dev/null || exit 77
export FI_PROVIDER_PATH="$1" FI_PROVIDER=pm FI_PM_IP=127.0.0.1
fi_info -p pm | grep -q 'type: FI_EP_RDM'
port=$((10000 + $$ % 2000 * 10))
out=$(mktemp)
trap 'rm -f "$out"' EXIT
timeout 600 fi_pingpong -p pm -e rdm -I 20 -B "$port" > /dev/null &
server=$!
tries=0
while [ "$tries" -lt 150 ]; do
  tries=$((tries + 1))
  if timeout 600 fi_pingpong -p pm -e rdm -I 20 -P "$port" 127.0.0.1 > "$out" 2>&1; then
    wait "$server"
    cat "$out"
    exit 0
  fi
  sleep 0.2  # the server may not listen yet
done
kill "$server"
cat "$out"
exit 1
