#!/bin/sh
# slurm_clients.sh DIR: a virtual environment in DIR with programs from PyPI that call Slurm's commands or the HTTP API, and with Nextflow in
# DIR/nextflow, if Maven and Java are there. What is there already stays; without a network there is none, and the tests that want it say so and are
# skipped.
set -u
packages="schemathesis ipykernel jupyter-client submitit psij-python dask-jobqueue parsl snakemake snakemake-executor-plugin-slurm snakemake-executor-plugin-cluster-generic"
[ -e "$1/complete" ] && exit 0
rm -rf "${1:?}"
python3 -m venv "$1" || { rm -rf "${1:?}"; echo "slurm_clients: python3 has no venv" >&2; exit 0; }
timeout 30 "$1/bin/pip" index versions -q --disable-pip-version-check --retries 0 --timeout 5 submitit >/dev/null 2>&1 || {
  rm -rf "${1:?}"
  echo "slurm_clients: PyPI cannot be reached (set PIP_INDEX_URL or HTTPS_PROXY): tests with Slurm's clients are skipped" >&2
  exit 0
}
# shellcheck disable=SC2086
if timeout 600 "$1/bin/pip" install -q --disable-pip-version-check --retries 1 --timeout 10 $packages >&2; then
  : >"$1/complete"
else
  echo "slurm_clients: not all packages could be installed" >&2
fi
# The last version of Nextflow whose parts Maven's registry has.
if command -v mvn >/dev/null && command -v java >/dev/null; then
  pom=$(mktemp -d)
  cat >"$pom/pom.xml" <<XML
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>scored</groupId>
<artifactId>clients</artifactId><version>1</version><packaging>pom</packaging><dependencies><dependency>
<groupId>io.nextflow</groupId><artifactId>nextflow</artifactId><version>23.10.1</version></dependency></dependencies></project>
XML
  timeout 600 mvn -q -B -f "$pom/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$pom/jars" >&2 &&
    mv "$pom/jars" "$1/nextflow" || echo "slurm_clients: Nextflow cannot be had from Maven's registry" >&2
  rm -rf "$pom"
fi
exit 0
