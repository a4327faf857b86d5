// Acts as the head for tests: listens with a separate key, greets the real node daemon, answers its
// heartbeats and records its frames. Starts and ends the node's processes.
#pragma once

#include "base/async/task_group.hpp"
#include "proto/convert/convert.hpp"
#include "proto/transport/tls_connection.hpp"

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

namespace score::node::test {

class TestHead {
 public:
  // Makes a directory for the test; uses cgroups if they may be made here and `wants_cgroups` is
  // set.
  explicit TestHead(bool wants_cgroups);
  ~TestHead();  // ends every process and removes the directory
  TestHead(const TestHead&) = delete;
  TestHead& operator=(const TestHead&) = delete;

  [[nodiscard]] bool has_cgroups() const { return !cgroup_root_.empty(); }

  // Starts the launcher with the shepherd of the build, or with a different program in its place.
  void start_launcher(const std::string& shepherd = SHEPHERD_PROGRAM);
  void start_node();
  // Sends SIGKILL and waits for the end.
  void kill_node();
  // Sends SIGTERM. Returns the exit status, or -1 if the daemon does not end.
  int stop_node();

  void break_link() { connection_->close(); }

  // Reads frames and answers heartbeats until `holds` is true. Returns false after ten seconds.
  bool wait(const std::function<bool()>& holds);

  // Waits until the node has been greeted `times` times in all.
  bool wait_for_node(std::size_t times = 1) {
    return wait([this, times] { return hellos.size() >= times; });
  }

  // Waits until the node has read the last welcome, that is, until it sends heartbeats.
  bool wait_for_beat() {
    return wait([this] { return beats > 0; });
  }

  // Returns the first frame of this kind about the attempt that has not been taken yet; null if
  // none arrives in time.
  template <class Message>
  std::unique_ptr<Message> expect(std::uint64_t attempt);

  void prepare(std::uint64_t attempt, const std::string& script, std::uint64_t memory = 0) {
    prepare_on(1, attempt, script, memory);
  }

  // The attempt has a task on each of `nodes` nodes, of which this one is the first.
  void prepare_on(std::size_t nodes, std::uint64_t attempt, const std::string& script,
                  std::uint64_t memory = 0);
  void start(std::uint64_t attempt);
  void kill(std::uint64_t attempt);
  void forget(std::uint64_t attempt);
  // Lets attempts take turns of `quantum`, beginning shortly after now. `fill`: all of them may
  // fill.
  void take_turns(std::uint64_t epoch, std::vector<std::uint64_t> attempts,
                  std::chrono::nanoseconds quantum, bool fill = false);
  // Returns the content of the attempt's cpu.idle, or "" if it has none.
  [[nodiscard]] std::string idle_of(std::uint64_t attempt) const;

  template <class Message>
  void send(const Message& message) {
    proto::send(*connection_, message);
  }

  // Sends prepare and start, and waits for both replies.
  bool run(std::uint64_t attempt, const std::string& script);
  // Returns the standard output of the attempt so far, each byte once, by its offset.
  [[nodiscard]] std::string output(std::uint64_t attempt) const;

  bool is_mute = false;     // heartbeats are not answered
  bool forgets = true;      // answers Exited with ForgetTasks, like a head that has stored the end
  bool gives_cores = true;  // else an attempt has none, like that of a scout command
  std::size_t beats = 0;    // since the last hello
  std::uint64_t head_epoch = 1;
  std::string head_proof;
  std::filesystem::path dir;
  std::vector<wire::NodeHello> hellos;
  std::deque<proto::InFrame> frames;
  bool bounds_exchange = false;  // NodeWelcome.bounded_exchange
  std::map<std::uint64_t, std::map<std::uint64_t, std::string>> outputs;  // attempt, offset

 private:
  asio::awaitable<void> serve();
  asio::awaitable<void> talk(std::shared_ptr<proto::Connection> connection);
  void on_frame(proto::Connection& connection, proto::InFrame frame);
  pid_t spawn_program(const std::vector<std::string>& words, const std::string& log);

  asio::io_context io_{1};
  TaskGroup tasks_;
  proto::Key key_;
  std::unique_ptr<proto::TlsContext> tls_;
  std::unique_ptr<proto::TcpListener> listener_;
  std::shared_ptr<proto::Connection> connection_;
  std::string cgroup_root_;
  pid_t launcher_ = 0;
  pid_t node_ = 0;
};

template <class Message>
std::unique_ptr<Message> TestHead::expect(std::uint64_t attempt) {
  std::unique_ptr<Message> found;
  wait([&] {
    for (auto frame = frames.begin(); frame != frames.end(); ++frame) {
      if (frame->type != proto::frame_type<Message>()) continue;
      auto message = proto::parse<Message>(*frame);
      if (!message || message->attempt() != attempt) continue;
      found = std::make_unique<Message>(*std::move(message));
      frames.erase(frame);
      return true;
    }
    return false;
  });
  return found;
}

// Returns the state letter of proc(5); '-' if there is no such process.
char state_of(pid_t pid);
// Returns all processes whose command line has the word.
std::vector<pid_t> processes_with(const std::string& word);

}  // namespace score::node::test
