// scored-hooks runs one hook of the site and ends. For a node's hooks systemd starts it as root for
// each connection to its socket; in a cluster of one user the daemons start it as themselves. The
// caller chooses which kind of hook runs and for which job. The program, its limits and nearly all
// of its environment come from here.
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "scored/privileged/hooks/hook_process.hpp"
#include "scored/privileged/hooks/protocol.hpp"
#include "scored/privileged/hooks/request.hpp"
#include "scored/shared/config/hooks_config.hpp"
#include "scored/shared/config/tables.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <pwd.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

namespace score::hooks {
namespace {

constexpr int kCaller = STDIN_FILENO;
constexpr int kRequestWaitMs = 5'000;
// A user database that hangs must not keep this program for ever.
constexpr unsigned kMostLookupSeconds = 30;

constexpr const char* kUsage =
    "usage: scored-hooks [--config FILE] [--daemon-user NAME] [--submit]\n"
    "\n"
    "Runs one hook of [hooks] of scored.toml for the daemon that is connected to its standard\n"
    "input. scored-hooks.socket starts it as root; in a cluster of one user the daemons do.\n"
    "\n"
    "  --config FILE        configuration (default: /etc/scored/scored.toml)\n"
    "  --daemon-user NAME   accept requests of this user (default: that of this process)\n"
    "  --submit             run the submit hook, which has two files of the head; not as root\n"
    "  --help               print this help and exit\n"
    "  --version            print the version and exit\n";

struct Options {
  std::string config = "/etc/scored/scored.toml";
  std::string daemon_user;
  bool submits = false;
};

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--submit") {
      options.submits = true;
    } else if ((name == "--config" || name == "--daemon-user") && i + 1 < argc) {
      (name == "--config" ? options.config : options.daemon_user) = argv[++i];
    } else {
      return std::nullopt;
    }
  }
  return options;
}

Status check_caller(const Options& options) {
  uid_t allowed = geteuid();
  if (!options.daemon_user.empty()) {
    const passwd* const known = getpwnam(options.daemon_user.c_str());
    if (known == nullptr) return fail(Errc::NotFound, "no user {}", options.daemon_user);
    allowed = known->pw_uid;
  }
  const auto peer = peer_credentials(kCaller);
  if (!peer) return peer.error();
  if (peer->uid == UserId(allowed)) return {};
  return fail(Errc::Denied, "user {} may not run hooks", peer->uid);
}

Result<Request> read_request(bool submits) {
  pollfd caller{.fd = kCaller, .events = POLLIN, .revents = 0};
  if (poll(&caller, 1, kRequestWaitMs) != 1) return Error(Errc::Timeout);
  std::string bytes(sizeof(HookRequest) + 1, '\0');
  const ssize_t got = recv(kCaller, bytes.data(), bytes.size(), 0);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return parse_request(bytes, submits);
}

Result<HooksConfig> read_table(const std::string& path) {
  auto file = ConfigFile::load_own(path);
  if (!file) return file.error();
  ConfigSection root = file->root();
  HooksConfig config = read_hooks_config(root);
  ignore_other_tables(root, {"hooks"});
  if (auto sound = file->finish(); !sound) return sound.error();
  return config;
}

HookReply run(const Options& options, const Request& request) {
  HookReply reply;
  const auto fail_with = [&reply](const std::string& why) {
    reply.outcome = static_cast<std::uint32_t>(Outcome::Failed);
    const std::string text = escape_terminal(why, sizeof reply.text - 1);
    std::memcpy(reply.text, text.data(), text.size());
  };
  const auto config = read_table(options.config);
  if (!config) {
    fail_with(plain_text(config.error()));
    return reply;
  }
  HookRun hook;
  hook.path = config->path_of(request.hook);
  if (hook.path.empty()) {
    reply.outcome = static_cast<std::uint32_t>(Outcome::Absent);
    return reply;
  }
  if (const auto sound = check_hook_file(hook.path, UserId(geteuid())); !sound) {
    fail_with(plain_text(sound.error()));
    return reply;
  }
  alarm(kMostLookupSeconds);
  hook.environment = environment_of(request);
  alarm(0);
  hook.timeout = config->timeout_of(request.hook);
  hook.peer = kCaller;
  if (options.submits) {
    hook.input = kSubmitInput;
    hook.answers = kSubmitOutput;
  }
  if (const std::string why = run_hook(hook); !why.empty()) fail_with(why);
  return reply;
}

// The daemons have a raised priority, are spared when memory is short, and make private files.
void leave_daemon_settings() {
  setpriority(PRIO_PROCESS, 0, 0);
  umask(022);
  const UniqueFd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score) std::ignore = write_all(score.get(), "0");
}

int serve(const Options& options) {
  const auto refuse = [](const Error& error) {
    fmt::print(stderr, "<3>scored-hooks: {}\n", error.message());
    return 1;
  };
  if (options.submits && geteuid() == 0 && !options.daemon_user.empty())
    return refuse(fail(Errc::Denied, "--submit has no other user"));
  if (const auto known = check_caller(options); !known) return refuse(known.error());
  const auto request = read_request(options.submits);
  if (!request) return refuse(request.error());
  leave_daemon_settings();
  const HookReply reply = run(options, *request);
  return send(kCaller, &reply, sizeof reply, MSG_NOSIGNAL) == sizeof reply ? 0 : 1;
}

}  // namespace
}  // namespace score::hooks

int main(int argc, char** argv) {
  using namespace score::hooks;
  const std::string_view first = argc == 2 ? argv[1] : "";
  if (first == "--help") return std::fputs(kUsage, stdout) < 0 ? 1 : 0;
  if (first == "--version") return std::puts("scored " SCORE_VERSION) < 0 ? 1 : 0;
  const auto options = parse(argc, argv);
  if (!options) {
    std::fputs("scored-hooks: unknown arguments (--help explains)\n", stderr);
    return 2;
  }
  return serve(*options);
}
