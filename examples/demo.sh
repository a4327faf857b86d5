#!/bin/sh
# Runs inside `score virtual` (see ./try demo): two MPI jobs share all nodes; then the script shows the result.
set -eu
programs=${SCORED_EXAMPLES:-build/release/examples}
nodes=$(scnodes --no-header -o node | wc -l)
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

heading() { printf '\n== %s\n' "$*"; }

[ -x "$programs/ring" ] || { echo "demo: no MPI examples in $programs: is mpich installed?" >&2; exit 1; }

echo "virtual cluster: $nodes nodes on $(nproc) cores: switch times are real, application speed is not"

heading "scrun -N $nodes pi and scrun -N $nodes allreduce, MPICH programs, at the same time"
# Both jobs must compute most of the time: a job that mostly waits is idle, and leaves its slices to the other one.
scrun -q -N "$nodes" -J pi "$programs/pi" --seconds 12 --intervals 400000000 >"$results/pi" 2>&1 &
pi=$!
scrun -q -N "$nodes" -J allreduce "$programs/allreduce" --seconds 12 --elements 200000 >"$results/allreduce" 2>&1 &
allreduce=$!
sleep 9
heading "scq"
scq
heading "score info"
score info
heading "scadm trace --seconds 5"
scadm trace --seconds 5

status=0
wait "$pi" || status=$?
wait "$allreduce" || status=$?
heading "their output"
sed 's/^/pi: /' "$results/pi"
sed 's/^/allreduce: /' "$results/allreduce"

heading "scrun -N $nodes ring, alone"
scrun -q -N "$nodes" "$programs/ring" || status=$?

heading "scq: slices given to each job"
scq -o job,name,state,nodes,slices,scheduled,elapsed,exit
exit "$status"
