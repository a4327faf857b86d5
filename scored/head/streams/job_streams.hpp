#pragma once
// JobStreams manages the streams of all jobs: watchers and front ends, output to them and input
// from them, and messages between nodes. It turns the actions of JobOutput and JobInput into
// frames. All calls come from one thread.

#include "base/ids.hpp"
#include "base/model/distribution.hpp"
#include "base/result.hpp"
#include "proto/client.pb.h"
#include "proto/node.pb.h"
#include "proto/transport/connection.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/cluster/user_budgets.hpp"
#include "scored/head/fences/job_fences.hpp"
#include "scored/head/streams/job_input.hpp"
#include "scored/head/streams/job_output.hpp"
#include "scored/head/streams/job_relays.hpp"
#include "scored/head/streams/kept_outputs.hpp"
#include "scored/head/streams/output_room.hpp"
#include "scored/head/streams/repeat_filter.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

class JobStreams {
 public:
  struct Watch {
    ClientId client;
    std::shared_ptr<proto::Connection> connection;
    std::uint64_t tag = 0;
    bool front_end = false;
    bool input = false;
    std::uint64_t window_bytes = 0;
    std::uint64_t have_bytes = 0;
  };

  // Listener is the part of the head that ends jobs.
  class Listener {
   public:
    virtual void front_end_lost(JobId job) = 0;    // it went without Detach
    virtual void output_delivered(JobId job) = 0;  // the job ended and its output was taken
    virtual void abort(AttemptId attempt, std::string why) = 0;  // the attempt cannot continue

   protected:
    ~Listener() = default;
  };

  // Limits the input of a user's jobs that waits for their start. Front ends send none before it.
  static constexpr std::size_t kMaxWaitingInput = 8 * limits::kMiB;

  // `links` must outlive this object.
  explicit JobStreams(NodeLinks& links) : links_(links), fences_(links), relays_(links) {}

  // Must be called once, before the first job. The listener must outlive all other calls.
  void set_listener(Listener& listener) { listener_ = &listener; }

  // ---- the life of a job; calls about jobs that are not open do nothing
  struct Opening {
    JobId job;
    UserId user;
    bool driven = true;  // by a front end; else its output waits for no client
    std::int64_t stdin_rank = -2;
    bool recovered = false;  // it ran under an earlier head
    Distribution distribution = Distribution::Block;
  };

  void open(const Opening& opening);
  // Sets the nodes of an attempt; tasks_on_node is by node index. A new attempt replaces the old
  // one.
  void place(JobId job, AttemptId attempt, std::vector<NodeId> nodes,
             std::vector<std::uint32_t> tasks_on_node);
  void start_input(JobId job);  // its tasks run
  void release(JobId job);      // it is being killed: output no longer waits for clients
  void requeue(JobId job);      // no process of it runs any more; a new attempt will follow
  void abandon(JobId job);      // it has no front end any more, by request
  void news(JobId job, const wire::JobStatus& status);
  void finish(JobId job, wire::JobStatus status);  // JobEnded follows each client's last output
  // Closes the streams of a job of this user. Keeps the end of the output for some time if the job
  // ended without a front end.
  void close(JobId job, UserId user);

  [[nodiscard]] bool has_front_end(JobId job) const;
  [[nodiscard]] bool has_clients(JobId job) const;
  [[nodiscard]] bool is_delivered(JobId job) const;
  [[nodiscard]] bool is_on(NodeId node, AttemptId attempt) const;  // the job's current attempt
  [[nodiscard]] bool is_current(AttemptId attempt) const;

  // ---- clients
  // Errors: NotFound (job not open), Busy (the job has a front end, or input from a different
  // client; too many watchers), WrongState (this client already watches it).
  [[nodiscard]] Status attach(JobId job, Watch watch);
  // Sends what is kept of the output of a job that was closed.
  void send_kept(JobId job, proto::Connection& connection) const;
  // Returns true if the client was the front end.
  bool detach(JobId job, ClientId client);
  // Handles the end of a connection like detach() for all of its jobs, but a front end counts as
  // lost.
  void client_gone(ClientId client);
  void taken(JobId job, ClientId client, std::uint64_t bytes);
  // Errors: NotFound (this client gives no input), TooLarge (beyond the window, or too much input
  // of the user waits for jobs that have not started).
  [[nodiscard]] Status input(JobId job, ClientId client, std::string data, bool eof);
  void resize(JobId job, ClientId client, std::uint32_t rows, std::uint32_t columns);

  // ---- nodes; the caller has checked is_on()
  void link_lost(NodeId node);
  void task_output(NodeId node, wire::TaskOutput&& message);
  void task_input_taken(NodeId node, const wire::TaskInputTaken& message);
  void fence_enter(NodeId node, wire::FenceEnter&& message);
  // The job's tasks on the node have all ended, so fences do not wait for it. Nothing changes if
  // the attempt is not current or not on this node.
  void node_ended(NodeId node, AttemptId attempt);
  // Passes the message on to the node of the job that it names; drops it if there is none.
  void relay(NodeId node, wire::JobRelay&& message);

 private:
  struct Stream {
    explicit Stream(const Opening& opening)
        : user(opening.user),
          output(opening.driven, opening.recovered),
          stdin_rank(opening.stdin_rank),
          recovered(opening.recovered),
          distribution(opening.distribution) {}

    UserId user;
    JobOutput output;
    JobInput input;
    std::int64_t stdin_rank;
    bool recovered;
    Distribution distribution;
    AttemptId attempt;
    std::vector<RepeatFilter> repeats;  // by node index
    std::vector<NodeId> nodes;          // by node index
    std::vector<std::uint32_t> tasks_on_node;
    std::map<NodeId, std::uint32_t> index;  // into nodes
    std::map<ClientId, Watch> watches;
    std::optional<wire::JobStatus> ended;
    bool reported_delivered = false;
    ByteShare waiting_input;
    std::size_t waiting = 0;  // output.waiting_bytes(), as room_ knows it
  };

  [[nodiscard]] std::size_t most_kept(UserId user) const;
  // Returns the stream of an open job; a quiet job gets one and is not quiet any more.
  Stream* wake(JobId job);
  // Returns nullptr for a quiet job.
  Stream* find(JobId job);
  [[nodiscard]] const Stream* find(JobId job) const;
  void close_exchanges(AttemptId attempt);
  void perform(JobId job, Stream& stream, const OutputActions& actions);
  void count_room(JobId job, Stream& stream);
  void ask_to_repeat(const std::vector<OutputRoom::Place>& places);
  [[nodiscard]] bool may_refuse(NodeId node, const Stream& stream,
                                const wire::TaskOutput& message) const;
  void refuse_rest(JobId job, Stream& stream, std::uint32_t index);
  void forget_refusals(JobId job, const Stream& stream);
  void acknowledge(const Stream& stream, std::uint32_t index, std::uint64_t bytes);
  void send_output(JobId job, Stream& stream, const SendOutput& action);
  void send_end(Stream& stream, ClientId client);
  void forward_input(JobId job, Stream& stream);
  void give_input_room(JobId job, Stream& stream, std::uint64_t bytes);
  [[nodiscard]] static std::vector<std::uint32_t> input_nodes(const Stream& stream);

  NodeLinks& links_;
  Listener* listener_ = nullptr;
  JobFences fences_;
  JobRelays relays_;
  std::map<JobId, Stream> streams_;
  OutputRoom room_;
  UserBudgets input_budgets_{kMaxWaitingInput};
  // These jobs are open, but nothing has happened yet. A queue may be long, and a Stream takes 1
  // KiB.
  std::map<JobId, Opening> quiet_;
  std::map<ClientId, std::vector<JobId>> jobs_of_;  // jobs that each client watches
  KeptOutputs kept_;                                // of jobs that were closed
};

}  // namespace score::head
