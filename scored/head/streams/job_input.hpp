#pragma once
// JobInput is one job's standard input on its way from the front end to the node (or nodes) of the
// rank that reads it. The class is pure. The front end may have kIoWindowBytes in flight; it gets
// room back when the slowest of the nodes has taken the bytes.

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

  // Errors: TooLarge (beyond the window: the client violates the protocol). Input after the end of
  // input is dropped.
  [[nodiscard]] Status accept(std::string data, bool eof);
  // The tasks run on these nodes, so waiting input may be sent to each of them. Must be called when
  // the tasks have started. Without a node (no reader), input is dropped and its room given back at
  // once.
  void start(std::vector<std::uint32_t> node_indices);
  // Prepares for tasks of a new attempt, as if start() had not been called. Input that was sent is
  // lost with the old tasks; the end of input is sent again.
  void restart();
  // Returns what to send now to every node of targets(), and counts it as sent.
  [[nodiscard]] std::vector<Piece> take_pieces();

  // Returns true between start() and restart().
  [[nodiscard]] bool has_started() const { return started_; }

  [[nodiscard]] const std::vector<std::uint32_t>& targets() const { return targets_; }

  // Records that a node has passed bytes on to the task. Returns how much room the front end gets.
  [[nodiscard]] std::uint64_t taken(std::uint32_t node_index, std::uint64_t bytes);

  // Returns the bytes that wait for the start of the tasks.
  [[nodiscard]] std::size_t waiting_bytes() const;

  // Returns the bytes that were dropped because there was no reader; the front end gets room for
  // them.
  [[nodiscard]] std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  [[nodiscard]] std::uint64_t settle();

  std::vector<Piece> waiting_;
  std::vector<std::uint32_t> targets_;
  std::vector<std::uint64_t> taken_;  // by target
  bool started_ = false;
  bool ended_ = false;
  std::uint64_t accepted_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t settled_ = 0;  // the front end got room back up to here
  std::uint64_t dropped_ = 0;
};

}  // namespace score::head
