#pragma once
// Implements the shepherd's side of scored/privileged/checkpoint/protocol.hpp: it has criu save or
// restore the tasks of this node. It never waits.

#include "base/os/fd.hpp"
#include "scored/job/tasks/event_loop.hpp"
#include "scored/privileged/checkpoint/protocol.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <sys/types.h>

namespace score::shepherd {

class CriuClient {
 public:
  using What = checkpoint::CriuRequest::What;

  // Names an end of a pipe or socket that tasks have and whose other end this process has, or a
  // socket of PM.
  struct Stream {
    What what = What::Pipe;
    std::uint64_t inode = 0;  // of a socket of PM: its number
    int fd = -1;              // to restore: takes its place
  };

  using Done = std::function<void(const base::Status&)>;

  // The loop must outlive this object. Without a socket every order fails.
  CriuClient(EventLoop& loop, base::UniqueFd socket);

  ~CriuClient() { close(); }

  CriuClient(const CriuClient&) = delete;
  CriuClient& operator=(const CriuClient&) = delete;

  // Each calls `done` once, now or later. The descriptors may be closed when it returns. Errors:
  // errno codes, Closed, Busy, Failed (criu's log in the directory has the reason).
  void save(int directory, pid_t root, std::span<const Stream> streams, Done done);
  // last: the last process id that the saved job had given.
  void restore(int directory, pid_t last, std::span<const Stream> streams, Done done);

  void close();

 private:
  void order(checkpoint::CriuRequest request, int directory, std::span<const Stream> streams,
             Done done);
  base::Status send(const checkpoint::CriuRequest& request, int fd) const;
  void on_reply();

  EventLoop& loop_;
  base::UniqueFd socket_;
  Done done_;
};

}  // namespace score::shepherd
