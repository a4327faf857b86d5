#include "pario/server/io/peers.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace score::pario {
namespace {

constexpr std::size_t kMostJobs = 10'000;  // per peer; requests are repeated
constexpr int kPeerReconnectSeconds = 1;

}  // namespace

Peers::Peer::Peer(const VolumeDescription& volume, std::uint32_t server, const Link::Peer& how)
    : link(volume, server, how) {}

Peers::Peers(const VolumeDescription& volume)
    : volume_(volume), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Peers::Peers(const VolumeDescription& volume, const Peers* with)
    : volume_(volume),
      has_copies_(volume.replicas > 1),
      remembers_(!has_copies_),
      event_(::fcntl(with->fd(), F_DUPFD_CLOEXEC, 0)) {}

Peers::~Peers() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  for (const auto& [server, peer] : peers_) peer->thread.join();
}

void Peers::ask(std::uint32_t server, Request request, Done done) {
  add(server, {.request = std::move(request), .memory = {}, .done = std::move(done), .reply = {}});
}

void Peers::read(std::uint32_t server, Request request, iovec memory, Done done) {
  add(server,
      {.request = std::move(request), .memory = {memory}, .done = std::move(done), .reply = {}});
}

void Peers::add(std::uint32_t server, Job job) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<Peer>& peer = peers_[server];
  if (!peer) {
    peer = std::make_unique<Peer>(volume_, server,
                                  Link::Peer{kPeerReconnectSeconds, has_copies_, remembers_});
    // Signals end the loop, so its thread must receive them.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    peer->thread = std::thread([this, &made = *peer] { work(made); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  if (peer->jobs.size() < kMostJobs) {
    peer->jobs.push_back(std::move(job));
    changed_.notify_all();
  } else {
    job.error = EAGAIN;
    add_result(std::move(job));
  }
}

void Peers::work(Peer& peer) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return is_stopped_ || !peer.jobs.empty(); });
    if (is_stopped_) return;
    Job job = std::move(peer.jobs.front());
    peer.jobs.pop_front();
    lock.unlock();
    Call call;
    call.request = job.request;
    call.memory = job.memory;
    peer.link.start(call);
    peer.link.finish(call);
    job.error = call.error;
    job.reply = call.reply;
    lock.lock();
    add_result(std::move(job));
  }
}

// The caller holds the lock.
void Peers::add_result(Job job) {
  results_.push_back(std::move(job));
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void Peers::run_results() {
  std::vector<Job> results;
  {
    const std::scoped_lock lock(mutex_);
    results.swap(results_);
  }
  for (const Job& job : results) job.done(job.error, job.reply);
}

}  // namespace score::pario
