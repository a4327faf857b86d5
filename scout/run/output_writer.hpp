// Tasks' output on its way to our own stdout and stderr: queued, labelled line by line or gathered
// by node if asked, and counted, so that the head sends only as much as was written out.
#pragma once

#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace score::scout {

enum class OutputStyle {
  Plain,
  Labelled,  // "rank: " before each line
  Gathered,  // at the end, equal outputs once under the names of their ranks' nodes
  Json,      // the same as one object on stdout
};

class OutputWriter {
 public:
  explicit OutputWriter(OutputStyle style) : style_(style) {}

  // Output of a rank; is_error: to stderr. The first `known` bytes were shown before: they are
  // counted only.
  void take(std::uint32_t rank, bool is_error, std::string_view data, std::size_t known = 0);
  // For the end of the job: lines that have no end get one, what was gathered goes out. names[rank]
  // is its node; bold: headings stand out.
  void finish(const std::vector<std::string>& names, bool bold);

  [[nodiscard]] bool has_output(bool is_error) const { return !queue(is_error).chunks.empty(); }

  // Writes what goes without blocking after poll(2) said so: at most PIPE_BUF to what is not a
  // file. Gives the bytes of tasks' output that are done with. Errors: errno codes; what was queued
  // for this stream is then dropped.
  Result<std::uint64_t> write_some(bool is_error);

  // Bytes of tasks' output that were done with in calls that failed: nobody will have them.
  [[nodiscard]] std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

  [[nodiscard]] std::uint64_t received() const { return received_; }

  [[nodiscard]] std::uint64_t waiting() const { return waiting_; }  // received, not yet written

 private:
  struct Chunk {
    std::string text;
    std::uint64_t original = 0;  // bytes of tasks' output that end with this chunk
  };

  struct Queue {
    std::deque<Chunk> chunks;
    std::size_t written = 0;  // of the first chunk
  };

  [[nodiscard]] const Queue& queue(bool is_error) const { return queues_[is_error ? 1 : 0]; }

  std::string labelled(std::uint32_t rank, bool is_error, std::string_view data);
  void gather(std::uint32_t rank, bool is_error, std::string_view data);

  struct Group {
    bool is_error = false;
    std::string text;
    std::vector<std::string> nodes;
  };

  // What was gathered, equal texts of a stream once; stdout's first.
  [[nodiscard]] std::vector<Group> groups(const std::vector<std::string>& names) const;
  void finish_gathered(const std::vector<std::string>& names, bool bold);
  void finish_json(const std::vector<std::string>& names);

  OutputStyle style_;
  std::array<Queue, 2> queues_;
  std::map<std::pair<std::uint32_t, bool>, std::string> partial_;  // line begun, or gathered text
  std::uint64_t received_ = 0;
  std::uint64_t waiting_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace score::scout
