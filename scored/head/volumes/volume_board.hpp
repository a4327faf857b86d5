#pragma once
// The servers of jobs' striped volumes, gathered while a job is launched: each node reports where
// its server listens, and when all have, every node gets all of them. Pure. Everything may be sent
// again after a broken link or a restart of the head.

#include "base/ids.hpp"
#include "base/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

class VolumeBoard {
 public:
  struct Answer {
    std::vector<std::string> servers;     // [node index]
    std::optional<std::size_t> only_for;  // this node; the others have them
  };

  // Of a job of `count` nodes, which all have a part of its volume. nullopt: others are missing.
  // Errors: Malformed (`server` is not "IPV4:PORT").
  Result<std::optional<Answer>> ready(AttemptId attempt, std::size_t count, std::size_t index,
                                      const std::string& server);

  // The attempt has ended. Unknown: nothing happens.
  void close(AttemptId attempt) { volumes_.erase(attempt); }

  [[nodiscard]] std::size_t size() const { return volumes_.size(); }

 private:
  struct Volume {
    std::vector<std::string> servers;  // [node index]; empty: not yet
    std::size_t missing = 0;
  };

  std::map<AttemptId, Volume> volumes_;
};

}  // namespace score::head
