#pragma once
// Implements A's side of helper_wire.hpp. It never waits, because the helpers may have little
// processor time.

#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/result.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace score::shepherd {

class HelperClient {
 public:
  // `started` is called once per order. The process is not a child of this one. Errors: errno
  // codes; Closed, if the other side has ended.
  using Started = std::function<void(base::Result<base::SpawnedProcess>)>;

  struct Order {
    std::vector<std::string> arguments;  // the first is the name of the program
    int errors = -1;                     // becomes its standard error
    int extra = -1;                      // becomes Program::kExtraFd; -1: none
    int ready = -1;                      // becomes Program::kReadyFd
  };

  // Without a socket, every order fails. The loop must outlive this object.
  HelperClient(EventLoop& loop, base::UniqueFd socket);
  ~HelperClient();
  HelperClient(const HelperClient&) = delete;
  HelperClient& operator=(const HelperClient&) = delete;

  // The descriptors belong to the caller and may be closed when this returns. Errors: errno codes,
  // Closed; `started` is then not called.
  base::Status start(const Order& order, Started started);

  // Calls `lost` when the other side ends, and with it every helper.
  void set_lost(std::function<void()> lost) { lost_ = std::move(lost); }

 private:
  void on_reply();
  void give_up(const base::Error& why);

  EventLoop& loop_;
  base::UniqueFd socket_;
  std::deque<Started> asked_;
  std::function<void()> lost_;
};

}  // namespace score::shepherd
