#include "scored/head/process/run_head.hpp"

#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/os/priority.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "proto/transport/key_ring.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/config_warnings.hpp"
#include "scored/head/nodes/node_changes.hpp"
#include "scored/head/process/head_daemon.hpp"
#include "scored/head/process/run_two_heads.hpp"
#include "scored/shared/journal/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr int kBadUsage = 2;
constexpr int kNice = -10;  // ahead of the tasks, on a host that is also a node

constexpr const char* kUsage =
    "usage: scored --role=head [--config FILE] [OPTION]...\n"
    "Accepts jobs, schedules them on the nodes, and keeps their records.\n"
    "  --config FILE      configuration (default: /etc/scored/scored.toml), see scored.toml(5)\n"
    "  --check-config     only read and check the configuration\n"
    "  --new-key          create the key_file that the configuration names, and exit\n"
    "  --rotate-key       add a new cluster key to the key_file, and exit\n"
    "  --retire-key       keep only the newest cluster key in the key_file, and exit\n"
    "  --recover          the database is an older copy: continue after the nodes' jobs\n"
    "  --take-charge      the other of two heads is lost for good: use this state, unless it is\n"
    "                     known to lack changes\n"
    "  --node-key NAME    write the key of node NAME to ./NAME.key, and exit\n"
    "  --log-level LEVEL  error, warning, notice, info or debug; overrides the file\n"
    "  --help             print this help and exit\n"
    "  --version          print the version and exit\n";

struct CommandLine {
  std::string config_path = "/etc/scored/scored.toml";
  std::optional<LogLevel> log_level;
  std::string node_key;  // the node's name
  bool new_key = false;
  bool rotate_key = false;
  bool retire_key = false;
  bool check_only = false;
  bool recover = false;
  bool take_charge = false;
  bool help = false;
};

Result<CommandLine> read_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i];
    std::optional<std::string> value;
    if (const auto equals = name.find('='); equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    bool* const flag = name == "--check-config"  ? &line.check_only
                       : name == "--new-key"     ? &line.new_key
                       : name == "--rotate-key"  ? &line.rotate_key
                       : name == "--retire-key"  ? &line.retire_key
                       : name == "--recover"     ? &line.recover
                       : name == "--take-charge" ? &line.take_charge
                                                 : nullptr;
    if (flag != nullptr && !value) {
      *flag = true;
      continue;
    }
    if (name == "--help" && !value) {
      line.help = true;
      return line;
    }
    if (!value && i + 1 < arguments.size()) value = arguments[++i];
    const bool known =
        name == "--role" || name == "--config" || name == "--log-level" || name == "--node-key";
    if (!known) {
      return fail(Errc::Malformed, "unknown option {}; see --role=head --help", name);
    }
    if (!value) return fail(Errc::Malformed, "{} needs a value", name);
    if (name == "--config") line.config_path = *value;
    if (name == "--node-key") line.node_key = *value;
    if (name == "--log-level") {
      const auto level = parse_log_level(*value);
      if (!level) return fail(Errc::Malformed, "--log-level: '{}' is not a log level", *value);
      line.log_level = *level;
    }
  }
  return line;
}

int refuse(int status, const Error& error) {
  const std::string line = fmt::format("scored: head: {}\n", plain_text(error));
  [[maybe_unused]] const auto written = write_all(STDERR_FILENO, line);
  return status;
}

// The file keeps its owner, even if root changes it.
Status replace_keys(const std::string& path, const proto::KeyRing& ring) {
  struct stat before {};

  if (::stat(path.c_str(), &before) != 0)
    return fail(errno_code(errno), "cannot read key file {}", path);
  std::string text = ring.format();
  auto replaced = replace_file(path, text, 0600);
  proto::wipe(text);
  if (!replaced || before.st_uid == ::geteuid()) return replaced;
  if (::lchown(path.c_str(), before.st_uid, before.st_gid) == 0) return {};
  return fail(errno_code(errno), "cannot give key file {} to uid {}", path, before.st_uid);
}

Status change_keys(const CommandLine& line, const HeadConfig& config) {
  auto ring = proto::KeyRing::load(config.key_file);
  if (!ring) return ring.error();
  if (line.retire_key) ring->retire();
  if (line.rotate_key) {
    const auto now = wall_now().time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    if (auto added = ring->rotate(static_cast<std::uint64_t>(seconds)); !added) return added;
  }
  return replace_keys(config.key_file, *ring);
}

// Keys are made on the head's host. Each node gets only its own key, in a way that the
// administrator trusts.
Status make_keys(const CommandLine& line, const HeadConfig& config) {
  if (line.new_key) {
    auto stored = proto::store_key(config.key_file, proto::random_key());
    if (!stored) return stored;
  }
  if (line.rotate_key || line.retire_key) {
    if (auto changed = change_keys(line, config); !changed) return changed;
  }
  if (line.node_key.empty()) return {};
  const auto identity = proto::parse_node_identity(line.node_key);
  const bool is_node =
      identity && std::ranges::find(config.nodes, identity->node) != config.nodes.end();
  if (!is_node) {
    return fail(Errc::NotFound, "--node-key {}: the configuration names no such node",
                escape_terminal(line.node_key, 80));
  }
  const auto ring = proto::KeyRing::load(config.key_file);
  if (!ring) return ring.error();
  const auto key = ring->node_key(*identity);
  if (!key) return fail(Errc::NotFound, "the cluster key of {} was retired", line.node_key);
  std::string text = proto::format_numbered_key({*key, identity->generation}) + "\n";
  auto stored = proto::store_key_file(identity->node + ".key", text);
  proto::wipe(text);
  return stored;
}

}  // namespace

int run_head(const std::vector<std::string>& arguments) {
  auto line = read_command_line(arguments);
  if (!line) return refuse(kBadUsage, line.error());
  if (line->help) return write_all(STDOUT_FILENO, kUsage) ? 0 : kCannotStart;
  auto config = load_config(line->config_path);
  if (!config) return refuse(kBadUsage, config.error());
  if (line->check_only) {
    for (const std::string& warning : config_warnings(*config, host_lookups())) {
      const std::string text = fmt::format("scored: head: warning: {}\n", warning);
      [[maybe_unused]] const auto written = write_all(STDERR_FILENO, text);
    }
    const auto key = proto::check_key_file(config->key_file);
    if (!key) return refuse(kBadUsage, key.error());
    const auto hooks = check_hook_files(config->hooks, {Hook::Submit}, UserId(::geteuid()));
    return hooks ? 0 : refuse(kBadUsage, hooks.error());
  }
  if (auto applied = apply_node_changes(*config); !applied) {
    return refuse(kCannotStart, applied.error());
  }
  if (line->new_key || line->rotate_key || line->retire_key || !line->node_key.empty()) {
    const auto made = make_keys(*line, *config);
    return made ? 0 : refuse(kCannotStart, made.error());
  }
  if (line->log_level) config->log_level = *line->log_level;
  set_log_level(config->log_level);
  report_to_journal_if_started_by_it();
  ::signal(SIGPIPE, SIG_IGN);
  ::umask(0077);
  if (!set_nice(kNice)) log_debug("Cannot raise the priority; running at the default one");
  if (config->has_two_heads()) {
    TwoHeadsOptions two{
        arguments, {std::move(*config), line->log_level, line->recover}, line->take_charge};
    auto ended = run_two_heads(std::move(two));
    return ended ? *ended : refuse(kCannotStart, ended.error());
  }
  if (line->take_charge) {
    return refuse(kBadUsage, fail(Errc::Malformed, "--take-charge needs two heads"));
  }
  asio::io_context io{1};
  Daemon daemon(io, {std::move(*config), line->log_level, line->recover});
  if (auto started = daemon.start(); !started) return refuse(kCannotStart, started.error());
  return daemon.run();
}

}  // namespace score::head
