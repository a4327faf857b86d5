#pragma once
// LogShipper serves the follower while this head is in charge. It sends a copy of the database if
// the follower is not at the same position, then each transaction as it is committed. The commit
// log may acknowledge what the follower has stored; LeaderElection decides that. Thread: the
// loop's.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/os/fd.hpp"
#include "base/os/log.hpp"
#include "scored/head/process/leader_election.hpp"
#include "scored/head/store/commit_log.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace score::head {

class LogShipper {
 public:
  struct Parts {  // all must outlive the object
    Clock& clock;
    TaskGroup& tasks;
    LeaderElection& election;
    CommitLog& commits;
    std::string copy;  // file for the copy of the database
  };

  // Connects itself to LeaderElection and to the commit log; `term` is the term of that log.
  LogShipper(Parts parts, Epoch term);
  LogShipper(const LogShipper&) = delete;
  LogShipper& operator=(const LogShipper&) = delete;

  // These are handlers of LeaderElection while this head is in charge; the caller registers them.
  void frame(const proto::InFrame& frame);
  void lost();
  void tick(TimePoint now);

  // Releases the replies that may be sent.
  void advance();

 private:
  using ConnectionPtr = std::shared_ptr<proto::Connection>;

  void follow(const proto::InFrame& frame);
  void stored(const proto::InFrame& frame);
  void committed(std::uint64_t sequence, std::string changes);
  void ship(std::string frame);
  void start_copy();
  asio::awaitable<void> send_copy(UniqueFd file, std::uint64_t sequence, std::uint64_t stream);
  void send_backlog();
  void give_up(const std::string& why);

  Parts parts_;
  Epoch term_;
  LogLimiter refusals_;
  std::uint64_t committed_ = 0;
  ConnectionPtr follower_;
  std::uint64_t stream_ = 0;             // counts followers
  bool is_copying_ = false;              // transactions wait in the backlog while this is true
  std::optional<std::uint64_t> copied_;  // the copy contains transactions up to this one
  std::deque<std::string> backlog_;      // payloads of LogChanges
  std::size_t backlog_bytes_ = 0;
  std::uint64_t stored_ = 0;
  std::optional<TimePoint> waits_since_;  // since when the follower has stored nothing
};

}  // namespace score::head
