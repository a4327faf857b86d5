#pragma once
// This is a small fuzzer for hosts without clang: see tests/fuzz/replay.cpp.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace score::fuzz {

using Bytes = std::vector<std::uint8_t>;

struct HuntOptions {
  unsigned seconds = 0;
  unsigned seed = 0;
};

// Gives the input to the target, in a heap block of exactly its size, so that the sanitizer detects
// a read beyond the end.
void run(const Bytes& input);

// Mutates the inputs until the time is over, and keeps those that reach new branches. Prints its
// seed, and how many inputs it ran and kept.
void hunt(std::vector<Bytes> corpus, const HuntOptions& options);

}  // namespace score::fuzz
