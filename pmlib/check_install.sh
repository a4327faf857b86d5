#!/bin/sh
# check_install.sh BUILD_DIR SOURCE_DIR: what a user of the installed library gets. Installs it into
# a directory of its own; then the library exports the functions of pm.h under its version and
# nothing else, each has a manual page, and the examples can be built by pkg-config and run.
# Exit 77: pkg-config or a compiler is missing.
set -eu
build=$1 source=$2
for tool in pkg-config cc c++ nm; do
  command -v $tool >/dev/null || { echo "skipped: $tool is missing"; exit 77; }
done
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
DESTDIR=$root cmake --install "$build" --prefix /usr --component pm >/dev/null
library=$(find "$root/usr" -name libpm.so.1)
[ -n "$library" ] || { echo "libpm.so.1 is not installed"; exit 1; }

sed '/^ *\*/d; s|/\*.*\*/||' "$root/usr/include/pm.h" | grep -oE '\bpm_[a-z_]+\(' | tr -d '(' | sort -u >"$root/declared"
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort -u >"$root/exported"
sed 's/$/@@PM_1/' "$root/declared" | diff - "$root/exported" || { echo "exports differ from pm.h"; exit 1; }
[ -s "$root/declared" ] || { echo "pm.h declares nothing"; exit 1; }
if command -v scdoc >/dev/null; then
  while read -r name; do
    [ -e "$root/usr/share/man/man3/$name.3" ] || { echo "$name has no manual page"; exit 1; }
  done <"$root/declared"
fi

export PKG_CONFIG_PATH="${library%/*}/pkgconfig"
flags="$(pkg-config --cflags --libs pm) -Wl,-rpath,${library%/*}"
mkdir "$root/bin"
# The words of pkg-config are meant to be split.
cc -Wall -Werror -o "$root/bin/pm_pingpong" "$source/examples/pm_pingpong.c" $flags
c++ -std=c++20 -Wall -Werror -o "$root/bin/pm_queens" "$source/examples/pm_queens.cpp" $flags
ldd "$root/bin/pm_pingpong" | grep -q "libpm.so.1 => ${library%/*}" || { echo "another libpm"; exit 1; }
"$source/pmlib/run_examples.sh" "$root/bin"
echo "$(wc -l <"$root/declared") functions, examples run"
