#pragma once
// Acts as launcher and node daemon for tests. It starts a shepherd and its spawner as the launcher
// does, communicates with the shepherd as the node daemon does, and records what the shepherd
// sends. Blocking calls have deadlines; the destructor ends all processes.

#include "base/model/distribution.hpp"
#include "base/os/fd.hpp"
#include "proto/frames/frame_reader.hpp"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::shepherd::test {

// Returns the specification of a job that runs argv in /tmp with a small environment.
wire::LaunchSpec spec_of(std::vector<std::string> argv);
wire::LaunchSpec shell(const std::string& script);

struct NodePlace {
  std::uint32_t index = 0;
  std::vector<std::uint32_t> tasks_on_node{1};
  base::Distribution distribution{};
  std::uint32_t restarts = 0;
};

class TestNode {
 public:
  struct Options {
    uid_t user = 0;    // 0: this process's user
    uid_t daemon = 0;  // the user that listens and connects; 0: this process's
    bool connect = true;
    std::string program;  // empty: $SCORED_SHEPHERD
  };

  TestNode() : TestNode(Options()) {}

  explicit TestNode(Options options);
  ~TestNode();
  TestNode(const TestNode&) = delete;
  TestNode& operator=(const TestNode&) = delete;

  void connect();

  void disconnect() { socket_.reset(); }

  [[nodiscard]] bool is_connected() const { return static_cast<bool>(socket_); }

  template <class Message>
  void send(const Message& message) {
    send_bytes(
        proto::encode_frame_bytes(proto::frame_type<Message>(), message.SerializeAsString()));
  }

  void send_bytes(std::string_view bytes);
  void prepare(const wire::LaunchSpec& spec, const NodePlace& place = {});

  void start() { send(wire::StartTasks()); }

  void signal(int number);
  void input(std::string_view data, bool eof);
  void take(std::uint64_t bytes);

  // Handles incoming frames until `happened` holds. Returns false on a timeout, or if the
  // connection ended.
  bool wait(const std::function<bool()>& happened,
            std::chrono::milliseconds time = std::chrono::seconds(120));
  // Runs one turn for several nodes at once.
  static void turn(const std::vector<TestNode*>& nodes, int timeout_ms);
  // Sends Prepare and Start, and waits for Done or Refused.
  bool run(const wire::LaunchSpec& spec, const NodePlace& place = {});
  bool wait_ended();  // waits until the shepherd's process has ended
  void unlink_socket();

  [[nodiscard]] pid_t shepherd_pid() const { return shepherd_; }

  [[nodiscard]] std::size_t shepherd_rss_bytes() const;
  [[nodiscard]] const wire::TaskExit* exit_of(std::uint32_t rank) const;
  [[nodiscard]] std::string all_errors() const;

  // These members record the frames that the shepherd sent.
  std::optional<wire::ShepherdReady> ready;
  std::optional<wire::ShepherdRefused> refused;
  std::optional<wire::ShepherdStarted> started;
  std::optional<wire::ShepherdReport> report;
  std::optional<wire::ShepherdAbort> abort;
  std::optional<wire::ShepherdDone> done;
  std::vector<wire::TaskExit> ended;
  std::vector<wire::FenceEnter> fences;
  std::vector<wire::JobRelay> relays;        // not relayed yet
  std::map<std::uint32_t, std::string> out;  // [rank]
  std::map<std::uint32_t, std::string> err;
  std::uint64_t output_bytes = 0;  // next offset
  std::uint64_t repeated_bytes = 0;
  std::uint64_t input_taken = 0;

  bool takes_output = true;  // reply to each output with TaskOutputTaken
  bool keeps_output = true;  // store output in out and err

 private:
  void listen_as_daemon();
  void launch(const Options& options);
  void read_some();
  void on_frame(const proto::InFrame& frame);
  void on_output(const wire::TaskOutput& output);

  uid_t daemon_ = 0;
  std::string directory_;
  base::UniqueFd listener_;
  base::UniqueFd socket_;
  proto::FrameReader reader_;
  pid_t shepherd_ = 0;
};

// Creates a directory and removes it with its contents.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/shepherd_dir.XXXXXX";
};

// Runs several nodes of one job. As the head does, it merges their fences and ends all tasks when
// one fails or aborts.
class TestCluster {
 public:
  explicit TestCluster(std::vector<std::uint32_t> tasks_on_node);
  // Prepares and starts the job everywhere, and waits until every node is done. Returns false if a
  // node refused, or on a timeout.
  bool run(const wire::LaunchSpec& spec, std::chrono::milliseconds time = std::chrono::seconds(60));
  [[nodiscard]] std::string output() const;  // of all ranks in rank order
  [[nodiscard]] std::string errors() const;

  std::vector<std::unique_ptr<TestNode>> nodes;
  std::function<bool(const wire::JobRelay&)> loses;  // messages that are lost; empty: none
  std::function<void()> fence_ended = [] {};         // called after each fence
  std::size_t fences_done = 0;
  std::chrono::nanoseconds prepare_time{}, start_time{}, run_time{};

 private:
  void merge_fences();
  void pass_relays();
  void end_on_failure();
  bool wait_all(const std::function<bool(TestNode&)>& done, std::chrono::milliseconds time);
  std::vector<std::uint32_t> tasks_on_node_;
  bool is_ended_ = false;
};

}  // namespace score::shepherd::test
