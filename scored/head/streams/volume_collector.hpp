#pragma once
// VolumeCollector collects the servers of jobs' striped volumes while a job is launched. Each node
// reports where its server listens; when all have reported, every node gets all addresses. The
// class is pure. Reports may be repeated after a broken link or a restart of the head.

#include "base/ids.hpp"
#include "base/result.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

class VolumeCollector {
 public:
  struct Answer {
    std::vector<std::string> servers;     // indexed by node
    std::optional<std::size_t> only_for;  // only this node needs the answer
  };

  // Records the server of node `index` of a job of `count` nodes, which all have a part of its
  // volume. Returns nullopt while servers are missing. Errors: Malformed (`server` is not
  // "IPV4:PORT").
  Result<std::optional<Answer>> ready(AttemptId attempt, std::size_t count, std::size_t index,
                                      const std::string& server);

  // Forgets an attempt that has ended; an unknown attempt is ignored.
  void close(AttemptId attempt) { volumes_.erase(attempt); }

  [[nodiscard]] std::size_t size() const { return volumes_.size(); }

 private:
  struct Volume {
    std::vector<std::string> servers;  // indexed by node; empty until the node has reported
    std::size_t missing = 0;
  };

  std::map<AttemptId, Volume> volumes_;
};

}  // namespace score::head
