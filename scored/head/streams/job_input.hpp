#pragma once
// One job's standard input on its way from the front end to the node (or nodes) of the rank that
// reads it. Pure. The front end may have kIoWindowBytes under way; it gets room back when the
// slowest of the nodes has taken them.

#include "base/limits.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

class JobInput {
 public:
  struct Piece {
    std::string data;
    bool eof = false;
  };

  // Errors: TooLarge (beyond the window: the client breaks the protocol). After the end of input
  // more of it is dropped.
  [[nodiscard]] Status accept(std::string data, bool eof);
  // The tasks run on these nodes: what waits may be sent to each of them. Called for the first time
  // when they were started; with no node (no reader) input is taken at once.
  void start(std::vector<std::uint32_t> node_indices);
  // Other tasks will take it, as if start() had not been called. What was sent is lost with those
  // that took it; the end of input is sent again.
  void restart();
  // What to send now to every node of targets(); it counts as sent.
  [[nodiscard]] std::vector<Piece> take_pieces();

  [[nodiscard]] const std::vector<std::uint32_t>& targets() const { return targets_; }

  // A node passed bytes on to the task. The answer: what the front end gets room for.
  [[nodiscard]] std::uint64_t taken(std::uint32_t node_index, std::uint64_t bytes);

  // Room given without any node: what was dropped for lack of a reader. 0 if none.
  [[nodiscard]] std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  [[nodiscard]] std::uint64_t settle();

  std::vector<Piece> waiting_;
  std::vector<std::uint32_t> targets_;
  std::vector<std::uint64_t> taken_;  // [target]
  bool started_ = false;
  bool ended_ = false;
  std::uint64_t accepted_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t settled_ = 0;  // the front end got room back up to here
  std::uint64_t dropped_ = 0;
};

}  // namespace score::head
