#include "scored/job/scratch/volume.hpp"

#include "base/errc.hpp"
#include "base/os/log.hpp"
#include "base/os/unmount.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kMountLimit = 8s;    // below the head's deadline for a launch
constexpr base::Duration kFirstPause = 20ms;  // before an ended program is restarted
constexpr base::Duration kLongestPause = 1s;
constexpr base::Duration kSamplePeriod = 1s;
constexpr std::uint32_t kMostFailures = 5;  // of a server that never worked: 0.6 s
constexpr int kBacklog = 4'096;  // each node of the job connects, and more often after a restart

}  // namespace

JobVolume::JobVolume(EventLoop& loop, HelperClient& helpers, const wire::ShepherdPrepare& prepare,
                     std::string key, Handlers handlers)
    : loop_(loop),
      path_(prepare.scratch_path()),
      host_(prepare.scratch_host()),
      key_(std::move(key)),
      attempt_(prepare.attempt()),
      index_(prepare.node_index()),
      count_(static_cast<std::uint32_t>(prepare.tasks_on_node_size())),
      capacity_(prepare.scratch_bytes()),
      handlers_(std::move(handlers)),
      server_(loop, helpers, "scored-pario", {.ready = {}, .ended = [this] { server_ended(); }}),
      mount_(loop, helpers, "scored-pario-mount",
             {.ready = [this] { mounted(); }, .ended = [this] { mount_ended(); }}) {
  sample_.mutable_sample()->set_attempt(attempt_.value());
  sample_.mutable_sample()->set_capacity_bytes(capacity_);
}

JobVolume::~JobVolume() {
  for (const auto timer : {deadline_, server_timer_, mount_timer_, sample_timer_})
    loop_.cancel(timer);
}

std::string JobVolume::missing_here() {
  for (const char* program : {"scored-pario", "scored-pario-mount"}) {
    if (Program::find(program).empty()) {
      return fmt::format(
          "scratch: {} is not installed on this node: install the package scored-pario", program);
    }
  }
  if (access("/dev/fuse", R_OK | W_OK) != 0) {
    return "scratch: no access to /dev/fuse on this node: load the kernel module fuse";
  }
  if (access("/usr/bin/fusermount3", X_OK) != 0) {
    return "scratch: fusermount3 is missing on this node: install the package fuse3";
  }
  return {};
}

void JobVolume::set_transport(std::string_view wanted) {
  uses_pm_ = wanted == "pm" || wanted == "udp";
}

// ---- before the tasks ---------------------------------------------------------------------------

base::Status JobVolume::begin() {
  if (std::string missing = missing_here(); !missing.empty()) {
    return base::fail(base::Errc::Unsupported, "{}", missing);
  }
  auto directory = VolumeDirectory::make(path_, {attempt_, index_});
  if (!directory) return directory.error().with_context("scratch");
  directory_ = std::move(*directory);
  if (auto listening = listen(); !listening) return listening.error().with_context("scratch");
  deadline_ = loop_.after(kMountLimit, [this] {
    deadline_ = 0;
    fail(fmt::format("cannot mount the volume within {} s{}{}", kMountLimit / 1s,
                     mount_.last_line().empty() ? "" : ": ", mount_.last_line()));
  });
  report_listening();
  return {};
}

base::Status JobVolume::listen() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  listener_ = base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (inet_pton(AF_INET, host_.c_str(), &address.sin_addr) != 1) {
    return base::fail(base::Errc::Malformed, "'{}' is not an IPv4 address of this node", host_);
  }
  if (!listener_ || bind(listener_.get(), generic, length) != 0 ||
      ::listen(listener_.get(), kBacklog) != 0 ||
      getsockname(listener_.get(), generic, &length) != 0) {
    return base::fail(base::errno_code(errno), "cannot listen at {}", host_);
  }
  address_ = fmt::format("{}:{}", host_, ntohs(address.sin_port));
  return {};
}

void JobVolume::report_listening() {
  wire::ScratchReady ready;
  ready.set_attempt(attempt_.value());
  ready.set_server(address_);
  handlers_.listens(ready);
}

base::Status JobVolume::describe(const wire::ScratchServers& servers) {
  std::string text = fmt::format("name job-{}\nkey {}\n", attempt_, key_);
  for (const std::string& server : servers.servers()) text += fmt::format("server {}\n", server);
  text += "wait 10\n";  // the shepherds restart their servers
  if (uses_pm_) text += "transport pm\n";
  std::string message;
  if (!pario::parse_volume(text, volume_, message)) {
    return base::fail(base::Errc::Malformed, "description of the volume: {}", message);
  }
  if (volume_.servers.size() != count_) {
    return base::fail(base::Errc::Malformed, "{} servers for {} nodes", volume_.servers.size(),
                      count_);
  }
  return base::replace_file(directory_->description(), text, 0600);
}

void JobVolume::serve(const wire::ScratchServers& servers) {
  if (!directory_ || !volume_.servers.empty()) return;
  if (auto described = describe(servers); !described) {
    volume_.servers.clear();
    return fail(described.error().message());
  }
  start_server();
  start_mount();
}

void JobVolume::mounted() {
  mount_pause_ = {};
  if (std::exchange(is_ready_, true)) return;
  loop_.cancel(std::exchange(deadline_, 0));
  statistics_.emplace(loop_, volume_, index_, [this](const std::optional<pario::Statistics>& got) {
    auto& sample = *sample_.mutable_sample();
    sample.set_is_down(!got);
    if (got) {
      sample.set_used_bytes(got->used);
      sample.set_read_bytes(got->bytes_read);
      sample.set_written_bytes(got->bytes_written);
      sample.set_requests(got->requests);
      sample.set_queue(got->queue);
      sample.set_fallbacks(got->tcp_fallbacks);
    }
    send_sample();
  });
  sample_regularly();
  handlers_.ready();
}

void JobVolume::fail(const std::string& why) {
  if (is_ready_ || std::exchange(is_abandoned_, true)) return;
  handlers_.failed("scratch: " + why);
}

// ---- programs -----------------------------------------------------------------------------------

base::Duration JobVolume::next_pause(base::Duration& pause) const {
  pause = std::clamp<base::Duration>(pause * 2, kFirstPause, kLongestPause);
  return pause;
}

void JobVolume::start_server() {
  server_timer_ = 0;
  auto started =
      server_.start({"--volume", directory_->description(), "--index", std::to_string(index_),
                     "--directory", directory_->data(), "--capacity", std::to_string(capacity_),
                     "--listener", std::to_string(Program::kExtraFd)},
                    listener_.get());
  if (started) return;
  base::log_error("Cannot start the server of the volume", base::kv("err", started.error()));
  server_ended();
}

void JobVolume::server_ended() {
  if (is_abandoned_ || server_timer_ != 0) return;
  auto& sample = *sample_.mutable_sample();
  sample.set_restarts(sample.restarts() + 1);
  if (!is_ready_ && sample.restarts() >= kMostFailures) {
    return fail(fmt::format("cannot start the server: {}", server_.last_line()));
  }
  base::log_warning("The server of the volume ended; restarting it", base::kv("attempt", attempt_),
                    base::kv("last_line", server_.last_line()));
  server_timer_ = loop_.after(next_pause(server_pause_), [this] { start_server(); });
}

void JobVolume::start_mount() {
  mount_timer_ = 0;
  auto started = mount_.start({"--volume", directory_->description(), "--foreground", "--ready",
                               std::to_string(Program::kReadyFd), directory_->mount()},
                              -1);
  if (started) return;
  base::log_error("Cannot start the mount of the volume", base::kv("err", started.error()));
  mount_ended();
}

void JobVolume::mount_ended() {
  if (is_abandoned_ || mount_timer_ != 0) return;
  if (is_ready_) {
    auto& sample = *sample_.mutable_sample();
    sample.set_restarts(sample.restarts() + 1);
  }
  base::log_warning("The mount of the volume ended; mounting it again",
                    base::kv("attempt", attempt_), base::kv("last_line", mount_.last_line()));
  std::ignore = base::unmount(directory_->mount());
  mount_timer_ = loop_.after(next_pause(mount_pause_), [this] { start_mount(); });
}

// ---- while it runs ------------------------------------------------------------------------------

void JobVolume::sample_regularly() {
  sample_timer_ = loop_.after(kSamplePeriod, [this] { sample_regularly(); });
  server_pause_ = std::min(server_pause_, server_.pid() != 0 ? kFirstPause : server_pause_);
  statistics_->ask();
}

void JobVolume::send_sample() {
  handlers_.sample(sample_);
}

void JobVolume::resume() {
  if (directory_ && !is_ready_) report_listening();
  if (is_ready_) send_sample();
}

void JobVolume::abandon() {
  is_abandoned_ = true;
  loop_.cancel(std::exchange(server_timer_, 0));
  loop_.cancel(std::exchange(mount_timer_, 0));
  mount_.stop();
}

base::Status JobVolume::remove() {
  abandon();
  statistics_.reset();
  server_.stop();
  listener_.reset();
  if (!directory_) return {};
  auto removed = directory_->remove();
  if (!removed) return removed;
  directory_.reset();
  sample_.set_is_removed(true);
  send_sample();
  return {};
}

}  // namespace score::shepherd
