// The shell makes the bundle with tar, gzip and ldd, which every host has. It runs in a separate
// process, because it takes some tenths of a second while hosts are connected.
#include "scout/start/bundle.hpp"

#include "base/text.hpp"

#include <fcntl.h>
#include <signal.h>

namespace score::scout {

namespace {

constexpr std::size_t kMaxBundleBytes = std::size_t{512} << 20U;

// The script's $1 is the directory of the programs, and $2 is the working directory. The parts of
// the C library and libgcc_s come from the host. lib/scored is the tarball's folder of libraries.
// Installed programs that users cannot read have readable copies in libexec/scored/bundle. What is
// sent belongs to the user as whom all parts then run, so a mode would protect nothing (ADR 0106).
constexpr const char* kMake = R"(set -e
mkdir -p "$2/bundle/bin" "$2/bundle/lib"
cd "$2/bundle"
l="$1/../libexec/scored"
node="scored-launcher scored-shepherd scored-thaw scored-hooks scored-park"
for p in score-start scored $node scored-probe scored-pmix; do
  for d in "$1" "$l/bundle" "$l" "$l/hooks" "$1/../sbin"; do
    [ -x "$d/$p" ] && [ -r "$d/$p" ] || continue
    strip -o "bin/$p" "$d/$p" 2>/dev/null || cp -L "$d/$p" "bin/$p"
    break
  done
  [ -x "bin/$p" ] || [ "$p" = scored-pmix ] || { echo "no $p next to score in $1"; exit 1; }
done
for d in "$1/../lib/libfabric" "$1/../lib/$(uname -m)-linux-gnu/libfabric"; do
  [ -d "$d" ] && cp -RL "$d" lib/ && break
done
LD_LIBRARY_PATH=$1/../lib/scored ldd bin/* 2>/dev/null |
  sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
  grep -vE '/(lib(c|m|dl|rt|pthread|resolv|util|gcc_s)|ld-linux[^/]*)\.so' |
  while read -r l; do cp -L "$l" lib/; done
tar -cf - bin lib | gzip -1 > ../bundle.tgz.new
mv ../bundle.tgz.new ../bundle.tgz
rm -rf "$2/bundle")";

}  // namespace

Status Bundle::start(const std::string& programs, const std::string& directory) {
  if (!directory_.empty()) return {};
  directory_ = directory;
  auto log = open_file(directory + "/log/bundle", O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (!log) return log.error();
  SpawnSpec spec;
  spec.path = "/bin/sh";
  spec.argv = {"sh", "-c", kMake, "sh", programs, directory};
  spec.environment = {"PATH=/usr/local/bin:/usr/bin:/bin"};
  spec.fds = {{log->get(), 1}, {log->get(), 2}};
  spec.new_session = true;
  spec.die_with_parent = true;
  auto child = spawn(spec);
  if (!child) return child.error();
  maker_ = std::move(*child);
  return {};
}

Result<bool> Bundle::on_child(pid_t pid, int shell_code) {
  if (pid != maker_.pid) return false;
  maker_ = {};
  if (shell_code != 0) {
    const auto log = read_file(directory_ + "/log/bundle", 1U << 20U);
    return fail(Errc::Unsupported, "the programs cannot be packed: {}", log ? last_line(*log) : "");
  }
  auto bytes = read_file(directory_ + "/bundle.tgz", kMaxBundleBytes);
  if (!bytes) return bytes.error();
  bytes_ = std::make_shared<const std::string>(std::move(*bytes));
  return true;
}

}  // namespace score::scout
