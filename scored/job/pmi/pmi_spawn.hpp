#pragma once
// The spawn command of PMI-1: for each program "mcmd=spawn\n", lines "key=value\n" and "endcmd\n";
// one answer comes after the last. A value may hold blanks. Pure; what it reads is hostile.

#include "base/result.hpp"
#include "proto/common.pb.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::shepherd {

// What a task wants to start.
struct PmiSpawn {
  std::vector<wire::Program> programs;
  std::string key_values;  // in the new world's key space: proto/frames/key_values.hpp
};

// Gathers the lines of one spawn, of one program or several.
class PmiSpawnReader {
 public:
  // A line after "mcmd=spawn", without its end. True: the last program's "endcmd".
  // Errors: TooLarge (limits::kMaxPmiBytesPerTask in all), Malformed (counts that the lines do not
  // fulfil, no program, no processes, programs out of turn).
  base::Result<bool> take(std::string_view line);

  // A further program begins.
  void begin() { lines_.clear(); }

  // After take() has said true.
  [[nodiscard]] PmiSpawn& whole() { return whole_; }

 private:
  base::Result<bool> end_program();

  std::string lines_;  // of the program that has begun
  std::size_t bytes_ = 0;
  std::optional<std::uint32_t> expected_;  // programs in all
  PmiSpawn whole_;
};

}  // namespace score::shepherd
