// Sends changes to the follower of a part, in order. One thread sends them, and a second one waits
// for the answers, which return to the loop through an eventfd. After the first failure all others
// fail at once, until reset().
#pragma once

#include "base/os/fd.hpp"
#include "pario/client/link.hpp"
#include "pario/server/io/transfer.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace score::pario {

class Forwarder {
 public:
  // This is called in the loop's thread with an errno value, EIO if the follower cannot be reached.
  using Done = std::function<void(int error)>;

  // `volume` must outlive this object. `event`: an eventfd that is written when there are results.
  Forwarder(const VolumeDescription& volume, std::uint32_t server, int event);
  // Waits for the changes in flight.
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  // `data` has request.data_bytes bytes. `keeps` holds the memory of the request's names and of the
  // data until `done` was called.
  void send(Request request, const char* data, std::shared_ptr<void> keeps, Done done);
  void reset();
  void run_results();

 private:
  struct Job {
    Call call;
    std::shared_ptr<void> keeps;
    Done done;
  };

  using JobPtr = std::unique_ptr<Job>;

  void run_sender();
  void run_finisher();
  void end(JobPtr job);

  Link link_;
  int event_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopped_ = false;
  bool is_broken_ = false;
  std::deque<JobPtr> waiting_;
  std::deque<JobPtr> sent_;
  bool is_sending_ = false;
  std::vector<JobPtr> results_;
  std::thread sender_;
  std::thread finisher_;
};

}  // namespace score::pario
