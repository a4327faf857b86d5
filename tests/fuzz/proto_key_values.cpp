// This fuzz target parses batches of PMI pairs. A parsed batch must encode to the same bytes, alone
// and concatenated.

#include "base/assert.hpp"
#include "proto/frames/key_values.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view batch(reinterpret_cast<const char*>(data), size);
  const auto entries = score::proto::parse_key_values(batch);
  if (!entries) return 0;
  std::string again;
  for (const auto& [key, value] : *entries) {
    SCORE_ASSERT(score::proto::append_key_value(again, key, value).has_value());
  }
  SCORE_ASSERT(again == batch, "a batch encodes to other bytes");
  again += batch;
  const auto twice = score::proto::parse_key_values(again);
  SCORE_ASSERT(twice && twice->size() == 2 * entries->size(), "two batches are one");
  return 0;
}
