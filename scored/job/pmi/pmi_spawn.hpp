#pragma once
// The spawn command of PMI-1 has for each program "mcmd=spawn\n", lines "key=value\n" and
// "endcmd\n". One answer follows the last program. A value may contain blanks. This module is pure;
// its input is hostile.

#include "base/result.hpp"
#include "proto/common.pb.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::shepherd {

// Describes the programs that a task requests to start.
struct PmiSpawn {
  std::vector<wire::Program> programs;
  std::vector<std::string> search;  // [program]: directories, as in PATH; may be empty
  std::string key_values;           // for the new world's key space: proto/frames/key_values.hpp
};

// Collects the lines of one spawn, which has one or more programs.
class PmiSpawnReader {
 public:
  // Takes a line after "mcmd=spawn", without its line end. Returns true at the last program's
  // "endcmd".
  // Errors: TooLarge (limits::kMaxPmiBytesPerTask in total), Malformed (counts that do not match
  // the lines, no program, no processes, programs out of order).
  base::Result<bool> take(std::string_view line);

  // Begins the next program.
  void begin() { lines_.clear(); }

  // Returns the complete spawn. Valid once take() has returned true.
  [[nodiscard]] PmiSpawn& whole() { return whole_; }

 private:
  base::Result<bool> end_program();

  std::string lines_;  // of the current program
  std::size_t bytes_ = 0;
  std::optional<std::uint32_t> expected_;  // total number of programs
  PmiSpawn whole_;
};

}  // namespace score::shepherd
