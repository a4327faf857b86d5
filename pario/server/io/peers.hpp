// Sends requests to the other servers of the volume. The loop must not wait for them, so each peer
// has a thread, which is created with the first request. Results return to the loop through an
// eventfd.
#pragma once

#include "base/os/fd.hpp"
#include "pario/client/link.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace score::pario {

class Peers {
 public:
  // This is called in the loop's thread. The error is EIO if the server cannot be reached.
  using Done = std::function<void(int error, const Reply& reply)>;

  explicit Peers(const VolumeDescription& volume);
  // Requests go to the replica that leads the part of a server. Results make `with` readable.
  Peers(const VolumeDescription& volume, const Peers* with);
  // Waits for the requests in flight.
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Sends a request. It may refer to memory that `done` keeps. EAGAIN: very many requests wait for
  // this peer.
  void ask(std::uint32_t server, Request request, Done done);

  // Returns a descriptor that is readable when there are results.
  int fd() const { return event_.get(); }

  // Calls `done` of all results.
  void run_results();

 private:
  struct Job {
    Request request;
    Done done;
    int error = 0;
    Reply reply;
  };

  struct Peer {
    Peer(const VolumeDescription& volume, std::uint32_t server, bool has_copy);
    Link link;
    std::deque<Job> jobs;
    std::thread thread;
  };

  void work(Peer& peer);
  void add_result(Job job);

  const VolumeDescription& volume_;
  bool has_copies_ = false;
  UniqueFd event_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;
  std::map<std::uint32_t, std::unique_ptr<Peer>> peers_;
  std::vector<Job> results_;
};

}  // namespace score::pario
