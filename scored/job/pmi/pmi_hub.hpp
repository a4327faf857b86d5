#pragma once
// The sockets of PmiServer: one to each task, non-blocking. While a task does not read its
// replies, its requests are not read.

#include "base/os/fd.hpp"
#include "scored/job/pmi/pmi_server.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <string>
#include <vector>

namespace score::shepherd {

class PmiHub {
 public:
  struct Handlers {
    std::function<void(const PmiActions::Fence&)> fence;
    std::function<void(const PmiActions::Abort&)> abort;
    std::function<void(std::uint32_t task, const std::string& text)> note;
    std::function<void(std::uint32_t task)> initialised;  // its MPI library has begun; may be empty
  };

  // The loop must outlive the hub.
  PmiHub(EventLoop& loop, PmiJob job, Handlers handlers);
  ~PmiHub();
  PmiHub(const PmiHub&) = delete;
  PmiHub& operator=(const PmiHub&) = delete;

  // The end that the task inherits. Errors: errno codes.
  base::Result<base::UniqueFd> connect(std::uint32_t task);
  // Errors: of PmiServer.
  base::Status fence_done(std::uint64_t sequence, std::string_view key_values);
  // What the task wrote before it ended is heard first.
  void task_ended(std::uint32_t task, bool failed);

  [[nodiscard]] const std::optional<PmiActions::Fence>& pending_fence() const {
    return server_.pending_fence();
  }

 private:
  struct Connection {
    base::UniqueFd socket;
    std::string out;  // replies that did not fit yet
  };

  void on_ready(std::uint32_t task, std::uint32_t events);
  bool read_some(std::uint32_t task);  // false: nothing there, or closed
  void write_out(std::uint32_t task);
  void carry_out(const PmiActions& actions);
  void close(std::uint32_t task);

  EventLoop& loop_;
  PmiServer server_;
  Handlers handlers_;
  std::vector<Connection> connections_;  // [task]
};

}  // namespace score::shepherd
