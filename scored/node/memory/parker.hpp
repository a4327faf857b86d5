// Parker has scored-park write the memory of frozen attempts to swap and read it back, one process
// per attempt and job of it. It also reports when the node is short of memory. See
// scored/privileged/park/protocol.hpp, docs/adr/0131 and docs/adr/0140.
#pragma once

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "base/model/model.hpp"
#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/result.hpp"
#include "gang/node/switch_plan.hpp"
#include "proto/client.pb.h"
#include "scored/node/memory/swap.hpp"
#include "scored/privileged/park/protocol.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace score::node {

struct ParkFigures {
  std::uint64_t parked = 0;    // attempts whose memory is out now
  Bytes in_swap{0};            // theirs
  Bytes written{0}, read{0};   // since the start of the daemon
  std::uint64_t failures = 0;  // attempts that could not be parked
  bool is_short = false;       // the node has less memory than it keeps free
};

class Parker {
 public:
  struct Parts {
    Clock& clock;
    TaskGroup& tasks;
    // Returns true if the attempt is stopped, and the plan in force never lets it run.
    std::function<bool(AttemptId)> is_held;
    std::function<std::string(AttemptId)> tasks_path;  // its cgroup; "" if it has none
    std::function<void(const base::ParkReport&)> report;
    std::function<void(const base::MemoryReport&)> report_memory;
  };

  struct Settings {
    std::string node;    // its name, for the log
    std::string socket;  // of scored-park; empty: it is started as a child
    MemoryConfig config;
  };

  // The parts must outlive the tasks.
  Parker(Parts parts, Settings settings)
      : parts_(std::move(parts)), settings_(std::move(settings)) {}

  // Carries out an order of the head. The newest one counts; each is answered by one report, unless
  // the attempt ends.
  void obey(const base::ParkTasks& order);
  // The attempt has ended here.
  void forget(AttemptId attempt);
  // The head has welcomed the node, and understands reports of memory or does not. From the first
  // call on the memory of the node is watched, if jobs are parked here at all.
  void welcomed(bool takes_reports);

  [[nodiscard]] ParkFigures figures() const;
  // Adds what was moved since then, of the last kMostMoves.
  void fill_trace(TimePoint since, wire::NodeTrace& trace) const;

 private:
  struct Parked {
    AttemptId attempt{};
    bool wants_out = true;
    bool is_working = false;  // a task works on it
    bool is_gone = false;     // forgotten
    bool is_ordered = false;  // scored-park was sent the order to read it back
    UniqueFd socket;          // of scored-park; none: it does not run
    SpawnedProcess child;
    std::optional<base::ParkReport> out;  // the memory is out
    Bytes written{0};                     // so far, since it was last ordered out
    std::set<AttemptId> behind;           // it is read ahead as the memory of these leaves
    Bytes room{0};                        // likewise: memory that was free before
    Bytes allowed{0};                     // scored-park may read so much ahead
  };

  struct Move {  // memory that was written or read
    AttemptId attempt{};
    bool out = false;
    Bytes bytes{0};
    TimePoint ended{};
    Duration took{0};
  };

  static constexpr std::size_t kMostMoves = 256;  // of the trace

  using ParkedPtr = std::shared_ptr<Parked>;

  void work(const ParkedPtr& parked);
  void order_back(Parked& parked) const;
  void read_ahead(const ParkedPtr& parked, const base::ParkTasks& order);
  void pace(Parked& parked) const;
  void note_written(Parked& parked, Bytes written);
  void note_move(const base::ParkReport& report);
  asio::awaitable<void> watch_memory();
  asio::awaitable<void> run(ParkedPtr parked);
  asio::awaitable<Status> await_freeze(ParkedPtr parked);
  asio::awaitable<void> write_out(ParkedPtr parked);
  asio::awaitable<void> read_back(ParkedPtr parked);
  asio::awaitable<Result<park::ParkReply>> read_reply(int socket);
  asio::awaitable<Result<park::ParkReply>> await_answer(ParkedPtr parked);
  static asio::awaitable<void> collect(SpawnedProcess child);
  asio::awaitable<void> stop_helper(ParkedPtr parked);
  [[nodiscard]] Bytes in_swap() const;
  [[nodiscard]] Status start(Parked& parked, bool is_back) const;
  [[nodiscard]] Status connect(Parked& parked) const;
  [[nodiscard]] Status launch(Parked& parked) const;
  void give_up(const ParkedPtr& parked, std::string why);
  void note_back(const ParkedPtr& parked, Bytes moved, Duration took);

  Parts parts_;
  Settings settings_;
  std::map<AttemptId, ParkedPtr> parked_;
  Bytes written_{0}, read_{0};
  std::uint64_t failures_ = 0;
  std::deque<Move> moves_;
  bool takes_reports_ = false;
  bool is_watching_ = false;
  bool is_short_ = false;
};

// Returns true if the plan is in force, has the attempt stopped, and never lets it run.
[[nodiscard]] bool is_held_by(const gang::SwitchPlan& plan, AttemptId attempt, TimePoint now);

// Returns the place where scored-park is reached: by its socket if the launcher belongs to root.
[[nodiscard]] std::string park_socket(const std::string& launcher_dir);

}  // namespace score::node
