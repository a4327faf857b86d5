#pragma once
// NetworkCollector manages the networks of running jobs, which are opened when a task first asks.
// Every node prepares sockets and reports their addresses; when all have reported, every node gets
// all addresses. If one node refuses, no node gets any. The class is pure.
//
// Every message may be repeated after a broken link or a restart of the head. The state that a node
// already has then counts: its key and channel are taken over. Nodes may have different ones if the
// head died while they prepared. Then those whose tasks have contexts keep theirs, and the others
// prepare again.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "gang/matrix/channels.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace score::head {

class NetworkCollector {
 public:
  explicit NetworkCollector(std::uint32_t channels) : channels_(channels) {}

  struct Job {
    gang::NetworkPlace place;
    std::vector<std::uint32_t> tasks_on_node;
    std::size_t links = 1;  // per task
  };

  struct PrepareAll {  // to every node of the attempt
    std::uint64_t key = 0;
    std::uint16_t channel = 0;
  };

  struct Ready {
    std::string addresses;                     // 6 bytes per rank and link, in order
    std::optional<std::size_t> only_for = {};  // node index; empty: for all
  };

  struct Failed {
    std::string reason;
    std::optional<std::size_t> only_for = {};
  };

  using Answer = std::variant<std::monostate, PrepareAll, Ready, Failed>;

  // Prepared is what a node has prepared.
  struct Prepared {
    std::size_t node_index = 0;
    std::uint64_t key = 0;
    std::uint32_t channel = 0;
    std::string addresses;
    bool is_open = false;  // its tasks have their contexts
  };

  void set_channels(std::uint32_t count) { channels_.set_count(count); }

  // Handles a request of a task on the node. `key` is random, and is used if the attempt has no key
  // yet.
  Answer request(AttemptId attempt, const Job& job, std::size_t node_index, std::uint64_t key);
  // Errors: Malformed (addresses of too few or too many tasks or links, key 0, no such node).
  Result<Answer> prepared(AttemptId attempt, const Job& job, Prepared message);
  Answer refused(AttemptId attempt, std::string reason);
  // Forgets an attempt that has ended; an unknown attempt is ignored.
  void close(AttemptId attempt);

  // Returns the attempts that have the same channel on a common node.
  [[nodiscard]] std::vector<AttemptId> sharers(AttemptId attempt) const {
    return channels_.sharers(attempt);
  }

  [[nodiscard]] std::size_t open_attempts() const { return collectors_.size(); }

 private:
  struct Collection {
    std::uint64_t key = 0;
    std::uint16_t channel = 0;
    std::vector<std::string> addresses;  // by node index; empty until reported
    std::size_t missing = 0;
    std::optional<std::string> failure;
  };

  static std::string all_addresses(const Collection& collector);
  void take_over(Collection& collector, AttemptId attempt, const Job& job, const Prepared& message);

  gang::Channels channels_;
  std::map<AttemptId, Collection> collectors_;
};

}  // namespace score::head
