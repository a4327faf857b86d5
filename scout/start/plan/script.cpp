#include "scout/start/plan/script.hpp"

#include "base/text.hpp"
#include "scout/start/plan/messages.hpp"

#include <fmt/core.h>

#include <cctype>

namespace score::scout {

namespace {

// Returns true if the path can be put into a script without quotes.
bool is_plain_path(std::string_view path) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._+-").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return path.starts_with('/') && std::ranges::all_of(path, is_plain);
}

// The host agent replaces the shell, so that no process of ours is left next to it.
constexpr const char* kSearch =
    R"(for q in {programs} /usr/libexec/scored /usr/local/libexec/scored; do )"
    R"([ -x $q/score-start ] && [ -x $q/scored-launcher ] || continue; )"
    R"(v=$($q/score-start --programs-version 2>/dev/null); )"
    R"([ "$v" = {version} ] && exec $q/score-start --host-agent; )"
    R"([ -n "$old" ] || old=$v; )"
    R"(done; )";

// The host agent inherits the lock, which distinguishes a directory in use from one that was left
// behind. A directory without a lock was left behind if it is older than ten minutes.
constexpr const char* kTake =
    R"(umask 077; u=$(id -u); )"
    R"(find {directory} -maxdepth 1 -name "scored-push-$u.*" -user $u -mmin +10 2>/dev/null | )"
    R"(while read -r o; do flock -n $o/lock rm -rf $o; done; )"
    R"(d=$(mktemp -d {directory}/scored-push-$u.XXXXXX) || {{ echo "{mark}error cannot create a )"
    R"(directory in {directory}: use --directory DIR"; exit 1; }}; )"
    R"(trap "rm -rf $d" EXIT; trap "exit 1" HUP INT TERM; )"
    R"(exec 9>$d/lock; flock 9; )"
    R"(echo "{mark}push $old"; )"
    R"(read -r n && head -c $n | tar -xzf - -C $d && [ -x $d/bin/score-start ] || )"
    R"({{ echo "{mark}error the programs could not be unpacked in $d: use --directory DIR for a )"
    R"(file system with room"; exit 1; }}; )"
    R"($d/bin/score-start --programs-version >/dev/null 2>&1 || LD_LIBRARY_PATH=$d/lib )"
    R"($d/bin/score-start --programs-version >/dev/null || {{ echo "{mark}error the programs do )"
    R"(not run there: install the packages of Scored {version}"; exit 1; }}; )"
    R"(export LD_LIBRARY_PATH=$d/lib; trap - EXIT; )"
    R"(exec $d/bin/score-start --host-agent --pushed $d)";

}  // namespace

Result<std::string> bootstrap_script(const ScriptPlan& plan) {
  for (const auto& path : {plan.programs, plan.directory}) {
    if (is_plain_path(path)) continue;
    return fail(Errc::Malformed, "{}: use a path of letters, digits and '/._+-'",
                escape_terminal(path, 200));
  }
  std::string script = "old=; ";
  if (plan.push != Push::Always) {
    script += fmt::format(fmt::runtime(kSearch), fmt::arg("programs", plan.programs),
                          fmt::arg("version", plan.version));
  }
  if (plan.push == Push::Never) return script + fmt::format("echo \"{}absent $old\"", kMark);
  return script + fmt::format(fmt::runtime(kTake), fmt::arg("directory", plan.directory),
                              fmt::arg("mark", kMark), fmt::arg("version", plan.version));
}

}  // namespace score::scout
