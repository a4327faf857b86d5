#pragma once
// Networks of running jobs, opened when a task first asks: every node prepares sockets and reports
// their addresses, and when all have, every node gets all of them. One refusal, and no node gets
// any. Pure.
//
// Everything may be sent again after a broken link or a restart of the head. What a node has
// already is then the truth: its key and channel are taken over. Where nodes have different ones,
// because the head died while they prepared, those whose tasks have contexts keep theirs, and the
// others prepare again.

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

class NetworkBoard {
 public:
  explicit NetworkBoard(std::uint32_t channels) : channels_(channels) {}

  struct Job {
    gang::NetworkPlace place;
    std::vector<std::uint32_t> tasks_on_node;
    std::size_t links = 1;  // of each task
  };

  struct PrepareAll {  // to every node of the attempt
    std::uint64_t key = 0;
    std::uint16_t channel = 0;
  };

  struct Ready {
    std::string addresses;                     // 6 bytes per rank and link, in order
    std::optional<std::size_t> only_for = {};  // node index; nothing: for all
  };

  struct Failed {
    std::string reason;
    std::optional<std::size_t> only_for = {};
  };

  using Answer = std::variant<std::monostate, PrepareAll, Ready, Failed>;

  // Of a node: what it has prepared.
  struct Prepared {
    std::size_t node_index = 0;
    std::uint64_t key = 0;
    std::uint32_t channel = 0;
    std::string addresses;
    bool is_open = false;  // its tasks have their contexts
  };

  void set_channels(std::uint32_t count) { channels_.set_count(count); }

  // A task on the node asks; `key` is random and used if the attempt has none yet.
  Answer request(AttemptId attempt, const Job& job, std::size_t node_index, std::uint64_t key);
  // Errors: Malformed (addresses of too few or too many tasks or links, key 0, no such node).
  Result<Answer> prepared(AttemptId attempt, const Job& job, Prepared message);
  Answer refused(AttemptId attempt, std::string reason);
  // The end of the attempt. Unknown: nothing happens.
  void close(AttemptId attempt);

  // The attempts that have the same channel on a common node.
  [[nodiscard]] std::vector<AttemptId> sharers(AttemptId attempt) const {
    return channels_.sharers(attempt);
  }

  [[nodiscard]] std::size_t open_attempts() const { return boards_.size(); }

 private:
  struct Board {
    std::uint64_t key = 0;
    std::uint16_t channel = 0;
    std::vector<std::string> addresses;  // [node index]; empty: not yet
    std::size_t missing = 0;
    std::optional<std::string> failure;
  };

  static std::string all_addresses(const Board& board);
  void take_over(Board& board, AttemptId attempt, const Job& job, const Prepared& message);

  gang::Channels channels_;
  std::map<AttemptId, Board> boards_;
};

}  // namespace score::head
