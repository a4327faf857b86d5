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

// Asks other servers. Tests of classes that decide what to ask have their own one.
class Asker {
 public:
  // This is called in the loop's thread. The error is EIO if the server cannot be reached.
  using Done = std::function<void(int error, const Reply& reply)>;

  virtual ~Asker() = default;
  // Sends a request. It may refer to memory that `done` keeps. EAGAIN: very many requests wait for
  // this server.
  virtual void ask(std::uint32_t server, Request request, Done done) = 0;
};

class Peers final : public Asker {
 public:
  explicit Peers(const VolumeDescription& volume);
  // With replicas, requests go to the one that leads the part of a server. Results make `with`
  // readable. Otherwise a server that does not answer is remembered as dead.
  Peers(const VolumeDescription& volume, const Peers* with);
  // Waits for the requests in flight.
  ~Peers() override;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  void ask(std::uint32_t server, Request request, Done done) override;
  // Sends a Read; the data goes to `memory`, which `done` keeps.
  void read(std::uint32_t server, Request request, iovec memory, Done done);

  // Returns a descriptor that is readable when there are results.
  int fd() const { return event_.get(); }

  // Calls `done` of all results.
  void run_results();

 private:
  struct Job {
    Request request;
    std::vector<iovec> memory;
    Done done;
    int error = 0;
    Reply reply;
  };

  struct Peer {
    Peer(const VolumeDescription& volume, std::uint32_t server, const Link::Peer& how);
    Link link;
    std::deque<Job> jobs;
    std::thread thread;
  };

  void add(std::uint32_t server, Job job);
  void work(Peer& peer);
  void add_result(Job job);

  const VolumeDescription& volume_;
  bool has_copies_ = false;
  bool remembers_ = false;
  UniqueFd event_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;
  std::map<std::uint32_t, std::unique_ptr<Peer>> peers_;
  std::vector<Job> results_;
};

}  // namespace score::pario
