#pragma once
// Represents the PMIx server of this node and job in the shepherd. The server (scored-pmix) is a
// process among the tasks, at the other end of a socket; the spawner forks it. This object also
// owns a directory for the server's files and removes it when it is destroyed.

#include "base/os/fd.hpp"
#include "base/os/pmix_directory.hpp"
#include "proto/frames/frame_reader.hpp"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"
#include "scored/job/pmi/pmi_server.hpp"
#include "scored/job/tasks/event_loop.hpp"

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace score::shepherd {

class PmixProcess {
 public:
  struct Handlers {
    std::function<void(const std::string& why)> failed;  // it cannot start; called once
    std::function<void()> ended;                         // it has started and is gone; called once
    std::function<void(const PmiActions::Fence&)> fence;
    std::function<void(const wire::PmixAbort&)> abort;
    std::function<void(wire::JobRelay&)> relay;  // for another node
    std::function<void(std::uint32_t task)> initialised;
    // A process has connected as a task that is connected already.
    std::function<void(std::uint32_t task)> connected_twice;
    std::function<void(const wire::PmixSpawn&)> spawn;  // answered by spawn_done()
    std::function<void(std::uint32_t world, const std::string& reason)> world_ready;
  };

  // The loop must outlive this object.
  PmixProcess(EventLoop& loop, Handlers handlers);
  ~PmixProcess();
  PmixProcess(const PmixProcess&) = delete;
  PmixProcess& operator=(const PmixProcess&) = delete;

  // Checks that the server is installed. Errors: NotFound (scored-pmix is not installed on this
  // node).
  static base::Status find();

  // Offers the server, which starts when a task first connects to the port returned, or when
  // begin() is called. plan: bytes of ShepherdPrepare. If the server cannot be started then, for
  // example because it is not installed, the client waits for an answer until the job ends. Errors:
  // errno codes.
  base::Result<std::uint16_t> offer(std::string plan);

  // Returns what the spawner needs to fork the server, after offer(); empty from then on.
  [[nodiscard]] std::vector<base::UniqueFd> take_descriptors() { return std::move(descriptors_); }

  // Returns true if the server is offered and has not been started yet.
  [[nodiscard]] bool is_offered() const { return !offered_plan_.empty(); }

  void begin();

  // Uses the server at the other end of this socket. Errors: errno codes.
  base::Status attach(base::UniqueFd socket);
  void fence_done(std::uint64_t sequence, std::string_view data);
  void relay(std::string_view bytes);  // bytes: a JobRelay from another node
  // Announces another world. plan: its ShepherdPrepare bytes. Returns true if world_ready will be
  // called, and false if the server has ended.
  bool add_world(std::string_view plan);
  void spawn_done(std::uint64_t token, std::uint32_t world);  // 0: the spawn failed

  [[nodiscard]] const std::string& directory() const { return directory_.path(); }

  // Returns false before the server has been started and after it has ended, which it does with the
  // node's last task.
  [[nodiscard]] bool is_running() const { return socket_ && !is_offered(); }

  // Returns true if the task, whose process has ended, was between init and finalize.
  [[nodiscard]] bool was_initialised(std::uint32_t task);

  // Removes the directory. Call it only when the server's process has ended; pending messages of
  // the server are still handled.
  void clean_up();

  // Returns the fence that other nodes have not completed yet.
  [[nodiscard]] const std::optional<PmiActions::Fence>& pending_fence() const { return fence_; }

 private:
  base::Result<std::uint16_t> listen();
  void on_ready(std::uint32_t events);
  bool read_some();  // false: nothing to read, or closed
  void on_frame(const proto::InFrame& frame);
  void send_frame(proto::FrameType type, std::string_view payload);
  void write_queue();
  void close();

  EventLoop& loop_;
  Handlers handlers_;
  base::PmixDirectory directory_;
  std::vector<base::UniqueFd> descriptors_;  // the server's end of the socket, the listener
  std::string offered_plan_;                 // while the server is offered
  base::UniqueFd socket_;
  base::UniqueFd silent_socket_;  // of a server that cannot be started
  proto::FrameReader reader_;
  std::string out_;
  std::set<std::uint32_t> initialised_;  // local tasks
  std::optional<PmiActions::Fence> fence_;
};

}  // namespace score::shepherd
