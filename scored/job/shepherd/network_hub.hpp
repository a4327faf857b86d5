#pragma once
// Manages the network of this node's tasks. A task that opens PM sends a request at its broker
// socket; the first request makes the node daemon gather the job's addresses. When the addresses
// have arrived, the hub creates the contexts of all tasks of this node, as the user. It sends them
// to the node daemon and to the tasks that requested them.

#include "base/model/distribution.hpp"
#include "base/os/fd.hpp"
#include "pmlib/core/segment.hpp"
#include "pmlib/network/broker.hpp"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"
#include "scored/job/tasks/event_loop.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace score::shepherd {

class NetworkHub {
 public:
  struct Job {
    std::uint64_t attempt = 0;
    std::uint32_t node_index = 0;
    std::vector<std::uint32_t> tasks_on_node;
    base::Distribution distribution = base::Distribution::Block;
  };

  struct Handlers {
    std::function<void()> wanted;  // asks the node daemon
    std::function<void(const wire::ShepherdNetwork&)> report;
    std::function<void(const wire::PassedDescriptors&, std::vector<base::UniqueFd>)> pass;
    std::function<void(std::uint32_t task, const std::string& text)> note;
    std::function<void(const std::string& why)> broken;  // the job cannot continue
  };

  // The loop must outlive the hub.
  NetworkHub(EventLoop& loop, Job job, Handlers handlers);
  ~NetworkHub();
  NetworkHub(const NetworkHub&) = delete;
  NetworkHub& operator=(const NetworkHub&) = delete;

  // Returns the end of the socket that the task inherits. Errors: errno codes.
  base::Result<base::UniqueFd> connect(std::uint32_t task);

  void task_ended(std::uint32_t task) { close(task); }

  // Returns true if a task has requested the network.
  [[nodiscard]] bool has_served() const { return has_served_; }

  // ---- checkpoints (docs/adr/0139)

  // Returns true if no task is opening the network.
  [[nodiscard]] bool is_quiet() const;
  // Returns why tasks with this network cannot be saved; empty: they can.
  [[nodiscard]] std::string why_not_saved() const;

  struct Saved {
    std::uint64_t key = 0;               // of the contexts
    std::vector<std::uint64_t> sockets;  // [task][link]: inodes
  };

  // Returns what identifies the network in the images; nothing: there is none.
  [[nodiscard]] std::optional<Saved> saved() const;

  // Opens a network for tasks that are restored. `ready` is called once, when the sockets and all
  // addresses are there, or with the reason why there is no network.
  using Ready = std::function<void(const base::Status&)>;
  void open_again(Ready ready);

  [[nodiscard]] const std::vector<base::UniqueFd>& sockets() const { return sockets_; }

  // Gives the contexts of restored tasks the new identity and addresses. found: contexts with the
  // saved key, in any order; tasks without one get a new context. Errors: errno codes,
  // Unsupported (this network is of another kind).
  base::Status take_contexts(std::vector<base::UniqueFd> found);

  // ---- messages of the node daemon; repeated ones are ignored

  // Sets up the network. The first call has no addresses and precedes this node's sockets, which
  // come next, so that they outlive the daemon; other nodes learn the sockets' addresses only
  // afterwards. The second call has all addresses. Without sockets there is only the second call.
  void prepare(wire::ShepherdNetwork network);
  void take_sockets(const wire::PassedDescriptors& message, std::vector<base::UniqueFd> sockets);
  void fail(const std::string& reason);
  // Handles the resume of a node daemon that lost all messages: repeats the request, or shows the
  // existing descriptors again.
  void resume();

 private:
  struct Connection {
    base::UniqueFd socket;
    bool is_waiting = false;
    std::size_t answered = 0;  // descriptors of this answer that were sent
  };

  [[nodiscard]] std::uint32_t local_tasks() const { return job_.tasks_on_node[job_.node_index]; }

  void on_request(std::uint32_t task);
  void answer(std::uint32_t task);
  bool answer_part(std::uint32_t task);
  void answer_error(std::uint32_t task);
  void answer_all();
  void close(std::uint32_t task);

  // Returns the number of links between nodes of each task.
  [[nodiscard]] std::size_t links() const {
    return network_ ? static_cast<std::size_t>(network_->links_size()) + 1 : 1;
  }

  [[nodiscard]] bool has_all_sockets() const { return sockets_.size() == local_tasks() * links(); }

  void complete();
  void create_contexts();
  base::Status make_contexts(std::vector<base::UniqueFd> restored);
  void show_sockets();
  std::unique_ptr<pm::MappedSegment> create_context(std::uint32_t rank);
  void show(wire::PassedDescriptors::What what, std::size_t count,
            const std::function<int(std::size_t)>& descriptor);

  EventLoop& loop_;
  Job job_;
  Handlers handlers_;
  std::uint32_t size_ = 0;
  std::vector<std::uint32_t> ranks_;     // [task]
  std::vector<Connection> connections_;  // [task]
  bool is_wanted_ = false;               // a request to the node daemon was sent
  bool has_served_ = false;
  Ready ready_;  // while a network for restored tasks is being opened
  std::optional<wire::ShepherdNetwork> network_;
  std::vector<base::UniqueFd> sockets_;   // [task][link]; empty: only shared memory
  std::vector<base::UniqueFd> contexts_;  // [task]; empty: not created yet
  std::optional<std::string> failure_;
};

}  // namespace score::shepherd
