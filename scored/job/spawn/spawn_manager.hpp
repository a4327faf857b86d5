#pragma once
// Grants requests to spawn tasks. The first node of a job with room for them decides, and the other
// nodes send it their requests. This class is pure, with one object per node; the caller carries
// messages and starts processes.
//
// One spawn is handled at a time. The manager chooses places, asks the nodes concerned whether
// their part could start (CHECK), and then has all nodes start it (START), so that every node knows
// each world. A place is used once. When no task of the job runs and none is requested, CLOSE ends
// the wait for more.
//
// Messages may be lost and repeated: turn() repeats requests without an answer, and each message
// may arrive twice.

#include "base/time.hpp"
#include "proto/common.pb.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace score::shepherd {

class SpawnManager {
 public:
  struct Message {
    std::uint32_t node = 0;
    wire::SpawnPeer message;
  };

  struct Answer {  // to request()
    std::uint64_t token = 0;
    std::uint32_t world = 0;  // 0: it failed
    std::string reason;
  };

  struct Actions {
    std::vector<Message> messages;
    std::vector<Answer> answers;
    std::optional<wire::SpawnedWorld> check;  // the caller must call checked()
    std::optional<wire::SpawnedWorld> start;  // the caller must call started()
    bool closes = false;                      // no more tasks will be started here
  };

  struct Job {
    std::uint32_t node = 0;
    std::vector<std::uint32_t> nodes_of_tasks;  // [number in the job]; not empty
    std::uint32_t spawn = 0;                    // how many of them, at the end, are room
  };

  explicit SpawnManager(Job job);

  // ---- requests and results of this node

  // Requests `world`, which has its programs, parent and key space. Each request is answered once.
  void request(std::uint64_t token, wire::SpawnedWorld world, base::TimePoint now);
  void checked(std::uint32_t world, const std::string& reason);
  void started(std::uint32_t world, const std::string& reason);
  // Records that all of the `count` tasks that were started here have ended.
  void idle(std::uint32_t count);

  // ---- incoming messages

  // Handles a message. Invalid messages are ignored.
  void receive(std::uint32_t from, const wire::SpawnPeer& message);
  // Repeats requests that have waited for long. Call it once per second while has_pending().
  void turn(base::TimePoint now);

  [[nodiscard]] Actions take_actions();
  [[nodiscard]] bool has_pending() const;

 private:
  using Asker = std::pair<std::uint32_t, std::uint64_t>;  // node and its request

  struct Asked {  // a request of this node that is not answered yet
    std::uint64_t token = 0;
    wire::SpawnPeer message;
  };

  enum class Step { Check, Start };

  struct Order {  // at the first node: the current spawn
    Asker asker;
    wire::SpawnedWorld world;
    Step step = Step::Check;
    std::map<std::uint32_t, std::string> answers;  // [node]: reason for a refusal; empty: accepted
  };

  void send(std::uint32_t node, wire::SpawnPeer message);
  void send_idle();
  void on_request(std::uint32_t from, const wire::SpawnPeer& message);
  void on_answer(const wire::SpawnPeer& message);
  void on_check(const wire::SpawnPeer& message);
  void on_start(const wire::SpawnPeer& message);
  void on_reply(std::uint32_t from, const wire::SpawnPeer& message, Step step);
  void on_idle(std::uint32_t from, const wire::SpawnPeer& message);

  [[nodiscard]] bool decides() const { return job_.node == first_node(); }

  [[nodiscard]] std::uint32_t first_node() const { return job_.nodes_of_tasks[0]; }

  void begin_next();
  [[nodiscard]] std::string choose_places(wire::SpawnedWorld& world) const;
  [[nodiscard]] std::set<std::uint32_t> nodes_of(const Order& order) const;
  void send_step();
  void finish_step();
  void answer(const Asker& asker, std::uint32_t world, const std::string& reason);
  void close_if_over();

  Job job_;
  Actions actions_;
  base::TimePoint repeated_;

  // ---- state of this node
  std::uint64_t last_request_ = 0;
  std::map<std::uint64_t, Asked> asked_;                        // [request]
  std::map<std::uint32_t, std::string> checks_;                 // [world]: the answer
  std::map<std::uint32_t, std::optional<std::string>> starts_;  // [world]; nullopt: in progress
  std::optional<std::uint32_t> idle_count_;
  bool is_closed_ = false;

  // ---- state of the first node
  std::deque<std::pair<Asker, wire::SpawnedWorld>> waiting_;
  std::optional<Order> order_;
  std::map<Asker, wire::SpawnPeer> answered_;  // the last answers, for repeated requests
  std::uint32_t used_ = 0;                     // number of places
  std::uint32_t last_world_ = 0;
  std::map<std::uint32_t, std::uint32_t> tasks_on_;  // [node]: started so far
  std::map<std::uint32_t, std::uint32_t> idle_on_;   // [node]: its started tasks when it was last
                                                     // idle
  bool is_over_ = false;
};

}  // namespace score::shepherd
