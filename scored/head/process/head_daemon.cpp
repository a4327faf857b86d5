#include "scored/head/process/head_daemon.hpp"

#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/systemd/notify.hpp"
#include "scored/head/nodes/node_changes.hpp"
#include "scored/shared/journal/event.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr int kOutlived = 3;  // the service manager does not restart it
constexpr std::size_t kDirectoryThreads = 4;
constexpr Duration kStatusPeriod = 5s;
constexpr Duration kReplyIsRead = 100ms;  // before the exit after a shutdown

}  // namespace

Status make_directory(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) {
    if (::chmod(path.c_str(), mode) == 0) return {};  // independent of the umask
  } else if (errno == EEXIST) {
    return {};
  }
  return fail(errno_code(errno), "cannot make {}", path);
}

Daemon::Daemon(asio::io_context& io, Options options)
    : io_(io),
      options_(std::move(options)),
      config_(options_.config),
      directory_(io, kDirectoryThreads),
      tasks_(io.get_executor(),
             [this](std::string_view task, const std::exception_ptr& e) {
               if (is_ending_) return;  // the objects that it uses are closed
               log_error("Task failed", kv("task", task), kv("err", describe_exception(e)));
               if (task != "serve client" && task != "serve node") exit_with(kCannotStart);
             }),
      exit_(io, 1) {}

Status Daemon::start() {
  auto keys = proto::KeyRing::load(config_.key_file);
  if (!keys) return keys.error();
  if (auto made = make_directory(config_.run_dir, 0755); !made) return made;
  if (auto made = make_directory(config_.state_dir, 0700); !made) return made;
  auto store = Store::open(config_.state_dir);
  if (!store) return store.error();
  if (auto forgotten = store->forget_log(); !forgotten) return forgotten;
  return start_with(*std::move(store), *keys);
}

Status Daemon::start(Election election) {
  election_.emplace(std::move(election));
  auto keys = proto::KeyRing::load(config_.key_file);
  if (!keys) return keys.error();
  return start_with(std::move(election_->store), *keys);
}

// Registers the handlers for the reports of the election and the frames of the other head.
void Daemon::follow_charge() {
  LeaderElection& election = *election_->election;
  shipper_.emplace(LogShipper::Parts{clock_, tasks_, election, head_->commits(),
                                     config_.state_dir + "/jobs.db.copy"},
                   election_->term);
  LeaderElection::Handlers handlers;
  handlers.stand_down = [this](const std::string& why) {
    report(Event::HeadStoodDown, kv("reason", why));
    election_->start_again();
  };
  handlers.log_frame = [this](const proto::InFrame& frame) { shipper_->frame(frame); };
  handlers.other_lost = [this] { shipper_->lost(); };
  handlers.advanced = [this] { shipper_->advance(); };
  handlers.tick = [this](TimePoint now) { shipper_->tick(now); };
  election.handle(std::move(handlers));
  head_->nodes().on_outlived([this] {
    report(Event::HeadStoodDown, kv("reason", "a node has shown the proof of a later head"));
    election_->start_again();
  });
  head_->nodes().recover_with(nullptr);  // a later term is reached by an election
  head_->set_heads([&election] { return election.states(); });
  head_->lease().use([&election] { return election.is_in_charge(); });
  server_->set_charge(election);
  if (election_->commands) server_->use_socket(UniqueFd(::dup(*election_->commands)));
  report(Event::HeadInCharge, kv("head", format_endpoint(config_.heads[config_.self])),
         kv("term", election_->term));
}

Status Daemon::start_with(Store store, const proto::KeyRing& keys) {
  if (auto written = store.write_files(); !written) return written;
  if (auto applied = apply_node_changes(config_); !applied) return applied;
  auto reader = StoreReader::open(store.path());
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
      Head::open(io_, clock_, config_, std::move(store), std::move(*reader), std::move(requests));
  if (!head) return head.error();
  head_ = std::move(*head);
  head_->nodes().set_keys(keys);
  head_->nodes().on_outlived([this] { exit_with(kOutlived); });
  if (options_.recover) head_->recover_from_copy();
  if (auto opened = open_monitoring(); !opened) return opened;
  notices_.emplace(io_, clock_, tasks_, head_->config().notify);
  head_->notices().connect(*notices_);
  ClientSession::Parts clients = head_->for_clients();
  clients.monitoring = &*monitoring_;
  clients.keys = [this](const Peer& peer, const wire::ManageKeys& command, const auto& reply) {
    server_->keys().execute(peer, command, reply);
  };
  clients.tokens = [this](const Peer& peer, const wire::ManageTokens& command, const auto& reply) {
    tokens_->execute(peer, command, wall_now(), reply);
  };
  server_.emplace(io_, clock_, *head_, std::move(clients));
  if (election_) follow_charge();
  if (auto opened =
          server_->open(config_, keys, server_limits(config_.nodes.size() * (election_ ? 2 : 1)));
      !opened) {
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
  notices_->start();
  tasks_.spawn("timer", head_->run_timer());
  tasks_.spawn("signals", handle_signals());
  tasks_.spawn("service manager", feed_manager());
  report(Event::HeadStarted, kv("cluster", config_.cluster), kv("nodes", config_.nodes.size()),
         kv("socket", config_.socket), kv("port", server_->node_port()),
         kv("incarnation", head_->nodes().incarnation()));
  notify_ready();
  return {};
}

// Opens the web server with the API for programs, whose requests the command server carries out.
Status Daemon::open_monitoring() {
  tokens_.emplace(head_->commits(), config_.state_dir);
  api_.emplace(HeadApi::Parts{clock_, head_->users(), *tokens_,
                              [this](UserId user, std::shared_ptr<proto::Connection> connection) {
                                server_->admit_own(user, std::move(connection));
                              }});
  Monitoring::Parts parts = head_->for_monitoring();
  parts.api = &*api_;
  monitoring_.emplace(io_, clock_, tasks_, parts);
  if (auto opened = monitoring_->open(config_.monitor); !opened) return opened;
  head_->nodes().set_observer(&*monitoring_);
  return {};
}

// If this fails, the daemons use TLS.
void Daemon::open_control() {
  if (auto opened = head_->control().open(config_.listen, config_.control_fanout, tasks_);
      !opened) {
    log_error("Cannot open the PM network of the daemons", kv("err", opened.error()));
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
  co_await head_->stop_hooks();
  head_->stop();
}

// Sets the exit status and starts the stop; later calls are ignored.
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
  auto wanted = load_config(config_.file);
  if (!wanted) return wanted;
  if (options_.log_level) wanted->log_level = *options_.log_level;
  if (auto applied = apply_node_changes(*wanted); !applied) return applied.error();
  return wanted;
}

void Daemon::reload() {
  const Peer service_manager{UserId(::geteuid()), proto::Role::Root, "SIGHUP", "signal"};
  head_->admin().execute(service_manager, ReloadConfiguration(), [](const auto& reloaded) {
    if (reloaded) return;
    log_error("Cannot reload the configuration; the old one stays in force",
              kv("err", reloaded.error()));
  });
}

// The watchdog is fed from the loop itself, so a hanging loop is noticed.
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

}  // namespace score::head
