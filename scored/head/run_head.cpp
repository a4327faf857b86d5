#include "scored/head/run_head.hpp"

#include "base/async/blocking_calls.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/os/priority.hpp"
#include "base/systemd/notify.hpp"
#include "base/text.hpp"
#include "proto/transport/key_ring.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/head.hpp"
#include "scored/head/observe/monitoring.hpp"
#include "scored/head/server.hpp"
#include "scored/journal/journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr int kCannotStart = 1;
constexpr int kBadUsage = 2;
constexpr int kOutlived = 3;  // the service manager does not start it again
constexpr std::size_t kDirectoryThreads = 4;
constexpr int kNice = -10;  // before the tasks, on a host that is a node too
constexpr Duration kStatusPeriod = 5s;
constexpr Duration kReplyIsRead = 100ms;  // the answer to a shutdown, before we exit

constexpr const char* kUsage =
    "usage: scored --role=head [--config FILE] [OPTION]...\n"
    "Accepts jobs, schedules them on the nodes, keeps the record.\n"
    "  --config FILE      configuration (default: /etc/scored/scored.toml), see scored.toml(5)\n"
    "  --check-config     only read and check the configuration\n"
    "  --new-key          make the key_file that the configuration names, and exit\n"
    "  --rotate-key       add a new cluster key to the key_file, and exit\n"
    "  --retire-key       leave only the newest cluster key in it, and exit\n"
    "  --recover          the database is an older copy: go on after the jobs that the nodes know\n"
    "  --node-key NAME    write that node's key to ./NAME.key, and exit\n"
    "  --log-level LEVEL  error, warning, notice, info or debug; overrides the file\n"
    "  --help             this text\n"
    "  --version          the version\n";

struct CommandLine {
  std::string config_path = "/etc/scored/scored.toml";
  std::optional<LogLevel> log_level;
  std::string node_key;  // of which node
  bool new_key = false;
  bool rotate_key = false;
  bool retire_key = false;
  bool check_only = false;
  bool recover = false;
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
    bool* const flag = name == "--check-config" ? &line.check_only
                       : name == "--new-key"    ? &line.new_key
                       : name == "--rotate-key" ? &line.rotate_key
                       : name == "--retire-key" ? &line.retire_key
                       : name == "--recover"    ? &line.recover
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
  const std::string line = fmt::format("scored: head: {}\n", error.message());
  [[maybe_unused]] const auto written = write_all(STDERR_FILENO, line);
  return status;
}

// One level; an existing directory is checked where it is used.
Status make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) {
    if (::chmod(path.c_str(), mode) == 0) return {};  // whatever the umask is
  } else if (errno == EEXIST) {
    return {};
  }
  return fail(errno_code(errno), "make {}", path);
}

// The file keeps its owner, also if root changes it.
Status replace_keys(const std::string& path, const proto::KeyRing& ring) {
  struct stat before {};

  if (::stat(path.c_str(), &before) != 0) return fail(errno_code(errno), "key file {}", path);
  std::string text = ring.format();
  auto replaced = replace_file(path, text, 0600);
  proto::wipe(text);
  if (!replaced || before.st_uid == ::geteuid()) return replaced;
  if (::lchown(path.c_str(), before.st_uid, before.st_gid) == 0) return {};
  return fail(errno_code(errno), "give key file {} to uid {}", path, before.st_uid);
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

// Keys are made on the head's host: each node gets only its own, by a way that the admin trusts.
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

// The daemon around head and server: signals, service manager, stop.
class Daemon {
 public:
  Daemon(CommandLine line, HeadConfig config)
      : line_(std::move(line)),
        config_(std::move(config)),
        tasks_(io_.get_executor(), [this](std::string_view task, const std::exception_ptr& e) {
          if (is_ending_) return;  // what it works with is closed
          log_error("task failed", kv("task", task), kv("err", describe_exception(e)));
          if (task != "serve client" && task != "serve node") exit_with(kCannotStart);
        }) {}

  Status start();
  int run();

 private:
  asio::awaitable<void> handle_signals();
  asio::awaitable<void> feed_manager();
  asio::awaitable<void> stop();
  [[nodiscard]] Result<HeadConfig> read_configuration() const;
  void reload();
  void open_control();
  void exit_with(int status);

  CommandLine line_;
  HeadConfig config_;
  asio::io_context io_{1};
  SteadyClock clock_;
  BlockingCalls directory_{io_, kDirectoryThreads};  // of users
  std::unique_ptr<Head> head_;
  std::optional<Server> server_;
  TaskGroup tasks_;
  std::optional<Monitoring> monitoring_;
  asio::experimental::channel<void(boost::system::error_code)> exit_{io_, 1};
  int exit_status_ = 0;
  bool is_ending_ = false;
};

Status Daemon::start() {
  auto keys = proto::KeyRing::load(config_.key_file);
  if (!keys) return keys.error();
  if (auto made = make_directory(config_.run_dir, 0755); !made) return made;
  if (auto made = make_directory(config_.state_dir, 0700); !made) return made;
  auto store = Store::open(config_.state_dir);
  if (!store) return store.error();
  auto reader = StoreReader::open(store->path());
  if (!reader) return reader.error();
  DaemonRequests requests;
  requests.read_configuration = [this] { return read_configuration(); };
  requests.exit = [this] {
    tasks_.spawn("exit", [](Daemon& self) -> asio::awaitable<void> {
      co_await self.clock_.sleep_for(kReplyIsRead);
      self.exit_with(0);
    }(*this));
  };
  requests.directory = [this](auto work, auto done) {
    directory_.run(std::move(work), std::move(done));
  };
  auto head =
      Head::open(io_, clock_, config_, std::move(*store), std::move(*reader), std::move(requests));
  if (!head) return head.error();
  head_ = std::move(*head);
  head_->nodes().set_keys(*keys);
  head_->nodes().on_outlived([this] { exit_with(kOutlived); });
  if (line_.recover) head_->recover_from_copy();
  monitoring_.emplace(io_, clock_, tasks_, head_->for_monitoring());
  if (auto opened = monitoring_->open(config_.monitor); !opened) return opened;
  head_->nodes().set_observer(&*monitoring_);
  ClientSession::Parts clients = head_->for_clients();
  clients.site = &*monitoring_;
  clients.keys = [this](const Peer& peer, const wire::ManageKeys& command) {
    return server_->keys().execute(peer, command);
  };
  clients.web_login = [this](const Peer& peer) { return monitoring_->web_login(peer); };
  server_.emplace(io_, clock_, *head_, std::move(clients));
  if (auto opened = server_->open(config_, *keys, server_limits(config_.nodes.size())); !opened) {
    return opened;
  }
  if (auto written = replace_file(config_.run_dir + "/head.port",
                                  std::to_string(server_->node_port()) + "\n", 0644);
      !written) {
    return written;
  }
  if (config_.control_over_pm) open_control();
  server_->start(tasks_);
  monitoring_->start(head_->nodes().incarnation());
  tasks_.spawn("timer", head_->run_timer());
  tasks_.spawn("signals", handle_signals());
  tasks_.spawn("service manager", feed_manager());
  report(Event::HeadStarted, kv("cluster", config_.cluster), kv("nodes", config_.nodes.size()),
         kv("socket", config_.socket), kv("port", server_->node_port()),
         kv("incarnation", head_->nodes().incarnation()));
  notify_ready();
  return {};
}

// Without it the daemons use TLS.
void Daemon::open_control() {
  if (auto opened = head_->control().open(config_.listen, config_.control_fanout, tasks_);
      !opened) {
    log_error("cannot open the PM network of the daemons", kv("err", opened.error()));
  }
}

int Daemon::run() {
  score::run(io_, stop());
  return exit_status_;
}

// Waits for exit_with(), then stops everything in order. Jobs continue.
asio::awaitable<void> Daemon::stop() {
  co_await exit_.async_receive(asio::use_awaitable);
  report(Event::HeadStopping, kv("status", exit_status_), kv("jobs", head_->overview().summary()));
  notify_stopping();
  server_->close();
  monitoring_->close();
  head_->control().close();
  co_await tasks_.stop();
  head_->stop();
}

// The first status counts.
void Daemon::exit_with(int status) {
  if (std::exchange(is_ending_, true)) return;
  exit_status_ = status;
  exit_.try_send(boost::system::error_code());
}

asio::awaitable<void> Daemon::handle_signals() {
  asio::signal_set signals(io_, SIGTERM, SIGINT, SIGHUP);
  for (;;) {
    const int number = co_await signals.async_wait(asio::use_awaitable);
    if (number != SIGHUP) break;
    reload();
  }
  exit_with(0);
}

Result<HeadConfig> Daemon::read_configuration() const {
  auto wanted = load_config(line_.config_path);
  if (wanted && line_.log_level) wanted->log_level = *line_.log_level;
  return wanted;
}

void Daemon::reload() {
  const Peer service_manager{UserId(::geteuid()), proto::Role::Root, "SIGHUP", "signal"};
  head_->admin().execute(
      service_manager, ReloadConfiguration(), [](const Result<std::string>& reloaded) {
        if (reloaded) return;
        log_error("cannot reload: keep the old configuration", kv("err", reloaded.error()));
      });
}

// From the loop itself, so that a loop that hangs is noticed.
asio::awaitable<void> Daemon::feed_manager() {
  const Duration period = watchdog_period().value_or(kStatusPeriod);
  std::string sent;
  for (;;) {
    notify_watchdog();
    if (std::string now = head_->overview().summary(); now != sent) {
      notify_status(now);
      sent = std::move(now);
    }
    co_await clock_.sleep_for(std::min(period, kStatusPeriod));
  }
}

}  // namespace

int run_head(const std::vector<std::string>& arguments) {
  auto line = read_command_line(arguments);
  if (!line) return refuse(kBadUsage, line.error());
  if (line->help) return write_all(STDOUT_FILENO, kUsage) ? 0 : kCannotStart;
  auto config = load_config(line->config_path);
  if (!config) return refuse(kBadUsage, config.error());
  if (line->check_only) {
    const auto key = proto::check_key_file(config->key_file);
    return key ? 0 : refuse(kBadUsage, key.error());
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
  if (!set_nice(kNice)) log_debug("keep the ordinary priority");
  Daemon daemon(std::move(*line), std::move(*config));
  if (auto started = daemon.start(); !started) return refuse(kCannotStart, started.error());
  return daemon.run();
}

}  // namespace score::head
