// Writes the tasks' output to our own stdout and stderr. It writes whole lines of each rank,
// labelled or gathered by node if requested. It counts the bytes, so that the head sends only as
// much as was written.
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
  Plain,     // lines of several ranks do not mix
  Labelled,  // "rank: " before each line
  Gathered,  // at the end, each distinct output once under the names of its nodes
  Json,      // as Gathered, in one object on stdout
};

class OutputWriter {
 public:
  explicit OutputWriter(OutputStyle style) : style_(style) {}

  // A longer line is written in pieces. "[...]" ends each piece but the last and begins each but
  // the first.
  static constexpr std::size_t kLongestLine = std::size_t{1} << 20U;
  // Limits the unfinished lines of all ranks together. Above the limit the longest one is written
  // as a piece.
  static constexpr std::size_t kMostHeld = std::size_t{16} << 20U;

  // With Plain, output of rank 0 is written at once, whether its line has ended or not. It is used
  // for a job with one task, or whose rank 0 has a terminal.
  void pass_rank_0() { passes_rank_0_ = true; }

  // Takes output of a rank; `is_error` directs it to stderr. The first `known` bytes were shown
  // before, so they are only counted. Text that is held until its line ends counts as written.
  void take(std::uint32_t rank, bool is_error, std::string_view data, std::size_t known = 0);
  // With Plain, writes the lines that may be prompts. They are short and unfinished, and do not end
  // where a program that buffers by blocks was cut off.
  void show_prompts();

  // Finishes the output at the end of the job. Unfinished labelled lines get an end, and held text
  // is written. names[rank] is its node; `bold` highlights headings.
  void finish(const std::vector<std::string>& names, bool bold);

  [[nodiscard]] bool has_prompts() const;

  [[nodiscard]] bool has_output(bool is_error) const { return !queue(is_error).chunks.empty(); }

  // Writes without blocking after poll(2) reported the stream ready: at most PIPE_BUF bytes, unless
  // it is a file. Returns the bytes of tasks' output that are finished. Errors: errno codes; then
  // the queue of this stream is dropped.
  Result<std::uint64_t> write_some(bool is_error);

  // Returns the bytes of tasks' output that were lost in calls that failed.
  [[nodiscard]] std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

  [[nodiscard]] std::uint64_t received() const { return received_; }

  [[nodiscard]] std::uint64_t waiting() const { return waiting_; }  // received, not yet written

 private:
  struct Chunk {
    std::string text;
    std::uint64_t original = 0;  // bytes of tasks' output up to the end of this chunk
  };

  struct Queue {
    std::deque<Chunk> chunks;
    std::size_t written = 0;  // bytes of the first chunk
  };

  [[nodiscard]] const Queue& queue(bool is_error) const { return queues_[is_error ? 1 : 0]; }

  struct Line {
    std::string text;         // of an unfinished line, or all gathered text
    std::uint64_t taken = 0;  // bytes taken from the stream
    bool is_rest = false;     // earlier pieces of this line were written
  };

  using Source = std::pair<std::uint32_t, bool>;  // rank, is_error

  std::string whole_lines(Source source, std::string_view data);
  void end_line(Source source, Line& line, std::string_view end, std::string& out);
  void write_piece(Source source, Line& line, std::string& out);
  void write_longest();
  [[nodiscard]] bool is_prompt(const Line& line) const;
  void gather(std::uint32_t rank, bool is_error, std::string_view data);

  struct Group {
    bool is_error = false;
    std::string text;
    std::vector<std::string> nodes;
  };

  // Returns the gathered texts. Equal texts of a stream are one group, and groups of stdout are
  // first.
  [[nodiscard]] std::vector<Group> groups(const std::vector<std::string>& names) const;
  void finish_gathered(const std::vector<std::string>& names, bool bold);
  void finish_json(const std::vector<std::string>& names);

  OutputStyle style_;
  std::array<Queue, 2> queues_;
  std::map<Source, Line> lines_;
  std::size_t held_ = 0;  // bytes in lines_
  bool passes_rank_0_ = false;
  std::uint64_t received_ = 0;
  std::uint64_t waiting_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace score::scout
