#include "scored/head/process/run_two_heads.hpp"

#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "base/systemd/notify.hpp"
#include "base/systemd/passed_socket.hpp"
#include "scored/head/etcd/etcd_lease.hpp"
#include "scored/head/process/standby.hpp"
#include "scored/shared/journal/event.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>

namespace score::head {
namespace {

constexpr int kFirstPassed = 3;  // SD_LISTEN_FDS_START

// Executes the same program with the same pid, so the service manager sees no difference. All
// descriptors close, and with them the lock of the state directory.
[[noreturn]] void execute_again(const std::vector<std::string>& arguments,
                                const std::optional<UniqueFd>& commands) {
  std::vector<std::string> words = {"scored"};
  for (const std::string& word : arguments) {
    // These options apply only once.
    if (word != "--take-charge" && word != "--recover") words.push_back(word);
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (commands) {
    // Copying a descriptor onto itself with dup2() would keep its close-on-exec flag.
    if (commands->get() == kFirstPassed) ::fcntl(kFirstPassed, F_SETFD, 0);
    if (commands->get() != kFirstPassed) ::dup2(commands->get(), kFirstPassed);
    ::setenv("LISTEN_FDS", "1", 1);
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  }
  ::closefrom(commands ? kFirstPassed + 1 : kFirstPassed);  // sockets of Asio survive an exec
  ::execv("/proc/self/exe", argv.data());
  log_error("Cannot execute the program again", kv("err", errno_code(errno).message()));
  ::_exit(1);  // the service manager restarts it
}

class TwoHeads {
 public:
  explicit TwoHeads(TwoHeadsOptions options)
      : options_(std::move(options)),
        config_(options_.daemon.config),
        tasks_(io_.get_executor(), [](std::string_view task, const std::exception_ptr& e) {
          log_error("Task failed", kv("task", task), kv("err", describe_exception(e)));
        }) {}

  Result<int> run();

 private:
  Status open();
  Status open_lease();
  Result<int> lead(Store store);

  [[noreturn]] void start_again() { execute_again(options_.arguments, commands_); }

  TwoHeadsOptions options_;
  const HeadConfig& config_;
  asio::io_context io_{1};
  SteadyClock clock_;
  std::optional<proto::KeyRing> keys_;
  std::optional<UniqueFd> commands_;
  std::optional<Store> store_;
  std::unique_ptr<etcd::EtcdLease> etcd_;  // if the lease is in etcd
  TaskGroup tasks_;
  std::optional<LeaderElection> election_;
};

Status TwoHeads::open_lease() {
  if (!config_.lease.is_in_etcd()) return {};
  auto etcd = etcd::EtcdLease::open(io_, clock_, config_.lease, config_.cluster);
  if (!etcd) return etcd.error().with_context("[heads]");
  etcd_ = *std::move(etcd);
  return {};
}

Status TwoHeads::open() {
  auto keys = proto::KeyRing::load(config_.key_file);
  if (!keys) return keys.error();
  keys_ = *std::move(keys);
  if (auto made = make_directory(config_.run_dir, 0755); !made) return made;
  if (auto made = make_directory(config_.state_dir, 0700); !made) return made;
  static_cast<void>(server_limits(2 * config_.nodes.size()));  // raises the limit of descriptors
  if (auto opened = open_lease(); !opened) return opened;
  auto passed = take_passed_socket(config_.socket);
  if (!passed) return passed.error();
  if (*passed) commands_ = *std::move(*passed);
  auto store = Store::open(config_.state_dir);
  if (!store) return store.error();
  store_ = *std::move(store);
  if (auto written = store_->write_files(); !written) return written;
  const auto position = store_->open_log();
  if (!position) return position.error();
  auto terms = store_->stored_terms(config_.self);
  if (!terms) return terms.error();
  gang::Leadership::Settings settings;
  settings.self = config_.self;
  if (options_.is_forced) settings.override_by = gang::Override::OtherIsLost;
  if (options_.daemon.recover) settings.override_by = gang::Override::AcceptsLoss;
  election_.emplace(LeaderElection::Parts{io_, clock_, tasks_, config_, *keys_, etcd_.get()},
                    settings, *position, *terms);
  return {};
}

Result<int> TwoHeads::run() {
  if (auto opened = open(); !opened) return opened.error();
  std::optional<int> commands;
  if (commands_) commands = commands_->get();
  Standby::End end{};
  {
    Standby standby({io_, clock_, config_, *election_, *store_, commands});
    if (auto opened = standby.open(); !opened) return opened.error();
    log_notice(
        "Started as one of two heads", kv("head", format_endpoint(config_.heads[config_.self])),
        kv("term", election_->position().term), kv("sequence", election_->position().sequence));
    election_->start();
    end = score::run(io_, standby.run());
    election_->handle({});
  }
  if (end == Standby::End::Failed) start_again();
  Result<int> status = 0;
  if (end == Standby::End::Elected) return lead(*std::move(store_));
  notify_stopping();
  score::run(io_, tasks_.stop());
  return status;
}

Result<int> TwoHeads::lead(Store store) {
  // The leases may have expired while the standby stopped.
  if (election_->role() != gang::LeadershipRole::Leader) start_again();
  const Epoch term = election_->position().term;
  std::optional<int> commands;
  if (commands_) commands = commands_->get();
  options_.daemon.recover = election_->has_accepted_loss();
  Daemon daemon(io_, options_.daemon);
  Daemon::Election election{&*election_, std::move(store), term, commands,
                            [this] { start_again(); }};
  Result<int> status = 0;
  if (auto started = daemon.start(std::move(election)); !started) {
    status = started.error();
  } else {
    status = daemon.run();
  }
  election_->handle({});
  score::run(io_, tasks_.stop());
  return status;
}

}  // namespace

Result<int> run_two_heads(TwoHeadsOptions options) {
  TwoHeads heads(std::move(options));
  return heads.run();
}

}  // namespace score::head
