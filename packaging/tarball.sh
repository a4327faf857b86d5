#!/bin/sh
# tarball.sh OUT [BUILD]: packs a release build, which Ninja made on Debian 12, as OUT/scored-VERSION-linux-ARCH.tar.xz.
# The tarball runs from any folder, on systems with glibc 2.34 or later.
#
# Nothing is compiled: programs are linked again from the objects of the build, since packed relocations need glibc
# 2.36 and a static libgcc needs 2.35. Each system has libc and libgcc_s. The other shared libraries are in lib/scored,
# which is in the RPATH of the programs. Unlike a RUNPATH, it also applies to the libraries that a library needs.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
build=$(cd "${2:-$source/build/release}" && pwd)
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")
name=scored-$version-linux-$(uname -m)
work=$out/work
top=$work/opt/$name
private=$top/lib/scored
gcc_files=$(dirname "$(g++ -print-libgcc-file-name)")
[ -f "$gcc_files/libstdc++_pic.a" ] ||
  { echo "tarball: $gcc_files has no libstdc++_pic.a: install the package libstdc++-12-pic" >&2; exit 1; }

# needs FILE: the shared libraries that a program or library names.
needs() { objdump -p "$1" 2>/dev/null | sed -n 's/^ *NEEDED *//p'; }

# relink FILE TARGET: links a target of the build as FILE. Only the daemon shares its C++ library with prometheus-cpp.
# The shared libpmix brings a libevent that needs glibc 2.36.
relink() {
  back=$(realpath --relative-to="$(dirname "$1")" "$top/lib")
  more="-s -Wl,--disable-new-dtags,-rpath,'\$ORIGIN/../lib:\$ORIGIN/$back:\$ORIGIN/$back/scored' $work/arc4random.o"
  needs "$1" | grep -q prometheus || more="$more -static-libstdc++"
  pmix="$(pkg-config --variable=libdir pmix)/libpmix.a -l:libhwloc.a -l:libevent_core.a -l:libevent_pthreads.a"
  pmix="$pmix -l:libmunge.so.2 -l:libudev.so.1 -lz"
  command=$(ninja -C "$build" -t commands -s "$2" | sed "s/^: && //; s/ && .*//; s/ -Wl,-z,pack-relative-relocs//
    s/ -static-libgcc//; s/ -Wl,-rpath[ ,][^ ]*//g; s|[^ ]*/libpmix.so|$pmix|; s| -o $2 | -o $1 $more |")
  [ -n "$command" ] || { echo "tarball: $build has no command that links $2: it must be a build by Ninja" >&2; exit 1; }
  (cd "$build" && sh -c "$command")
}

rm -rf "$work"
DESTDIR=$work cmake --install "$build" --prefix "/opt/$name" --strip >"$out/install.log"
mkdir "$private"
# Units are for packages, since they name /usr.
rm -rf "$top/lib/systemd" "$top/lib/sysusers.d" "$top/lib/tmpfiles.d" "$top/libexec/scored/split-user"
cp "$source/packaging/tarball_readme.txt" "$top/README"
cp "$source/LICENSE" "$top/"

cc -c -O2 -fPIC -ffunction-sections -o "$work/arc4random.o" "$source/packaging/arc4random.c"
find "$top" -type f -perm -u+x -o -type f -name '*.so*' | while read -r file; do
  case $(needs "$file") in
    '') continue ;;
    *libmpi*) rm "$file"; continue ;;  # the MPI of this system
  esac
  for place in bin examples lib lib/libfabric; do
    target=$place/$(basename "$file")
    [ -f "$build/$target" ] || continue
    mode=$(stat -c %a "$file")
    relink "$file" "$target"
    chmod "$mode" "$file"
    break
  done
done
# The package's shared C++ library needs glibc 2.36.
cc -shared -s -o "$private/libstdc++.so.6" -Wl,-soname,libstdc++.so.6 -Wl,--gc-sections \
  -Wl,--version-script="$gcc_files/libstdc++_pic.map" \
  -Wl,--whole-archive "$gcc_files/libstdc++_pic.a" -Wl,--no-whole-archive "$work/arc4random.o" -lm
shared=$(find "$top" -type f -perm -u+x -exec ldd {} + 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
  grep -vE "^$top/|/(libc|libm|libdl|libpthread|libgcc_s|ld-linux[^/]*)\.so")
for library in $shared; do cp -L "$library" "$private/"; done

# The licences of what was copied, what was linked statically, and what was compiled from headers.
linked=$(ninja -C "$build" -t commands all | grep -oE ' /usr/lib/[^ ]*\.a' | sort -u)
licences=$top/share/doc/scored/licences
mkdir -p "$licences"
for package in $(realpath $shared $linked | sed 's|.*/|*/|' | xargs dpkg -S | sed 's/:.*//' | sort -u) \
  libc6 libstdc++6 libpmix2 libhwloc15 libevent-2.1-7 libboost1.81-dev libfmt-dev libtomlplusplus-dev libcli11-dev; do
  cp -L "/usr/share/doc/$package/copyright" "$licences/$package"
done

tar -C "$work/opt" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-$(date +%s)}" \
  -cf - "$name" | xz -9 >"$out/$name.tar.xz"
rm -rf "$work"
ls "$out/$name.tar.xz"
