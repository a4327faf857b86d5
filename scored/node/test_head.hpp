// Plays the head for tests: listens with a key of its own, greets the real node daemon, answers its
// heartbeats and remembers what it said. Starts and ends the node's processes.
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
  // In a directory of its own; with cgroups if they may be made here and `wants_cgroups`.
  explicit TestHead(bool wants_cgroups);
  ~TestHead();  // ends every process and leaves nothing behind
  TestHead(const TestHead&) = delete;
  TestHead& operator=(const TestHead&) = delete;

  [[nodiscard]] bool has_cgroups() const { return !cgroup_root_.empty(); }

  // The shepherd of the build, or another program in its place.
  void start_launcher(const std::string& shepherd = SHEPHERD_PROGRAM);
  void start_node();
  // SIGKILL and waited for.
  void kill_node();
  // SIGTERM; the exit status, or -1 if it does not end.
  int stop_node();

  void break_link() { connection_->close(); }

  // False: not within ten seconds. Meanwhile frames are read and heartbeats answered.
  bool wait(const std::function<bool()>& holds);

  // Greeted, and as often as `times` in all.
  bool wait_for_node(std::size_t times = 1) {
    return wait([this, times] { return hellos.size() >= times; });
  }

  // It has read the last welcome: it beats.
  bool wait_for_beat() {
    return wait([this] { return beats > 0; });
  }

  // The first frame of this kind about the attempt that came and was not taken yet; empty: none
  // came in time.
  template <class Message>
  std::unique_ptr<Message> expect(std::uint64_t attempt);

  void prepare(std::uint64_t attempt, const std::string& script, std::uint64_t memory = 0) {
    prepare_on(1, attempt, script, memory);
  }

  // It has a task on each of `nodes` nodes, of which this one is the first.
  void prepare_on(std::size_t nodes, std::uint64_t attempt, const std::string& script,
                  std::uint64_t memory = 0);
  void start(std::uint64_t attempt);
  void kill(std::uint64_t attempt);
  void forget(std::uint64_t attempt);
  // Attempts take turns of `quantum` from a little ahead on. `fill`: all of them may fill.
  void take_turns(std::uint64_t epoch, std::vector<std::uint64_t> attempts,
                  std::chrono::nanoseconds quantum, bool fill = false);
  // What the attempt's cpu.idle says; "": it has none.
  [[nodiscard]] std::string idle_of(std::uint64_t attempt) const;

  template <class Message>
  void send(const Message& message) {
    proto::send(*connection_, message);
  }

  // prepare, start, and both answered.
  bool run(std::uint64_t attempt, const std::string& script);
  // The attempt's standard output as far as it has come, each byte once, by its offset.
  [[nodiscard]] std::string output(std::uint64_t attempt) const;

  bool is_mute = false;   // heartbeats are not answered
  bool forgets = true;    // answers Exited with ForgetTasks, as a head that has stored the end
  std::size_t beats = 0;  // since the last hello
  std::uint64_t head_epoch = 1;
  std::string head_proof;
  std::filesystem::path dir;
  std::vector<wire::NodeHello> hellos;
  std::deque<proto::InFrame> frames;
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

// State letter of proc(5); '-' if there is no such process.
char state_of(pid_t pid);
// Of all processes whose command line has the word.
std::vector<pid_t> processes_with(const std::string& word);

}  // namespace score::node::test
