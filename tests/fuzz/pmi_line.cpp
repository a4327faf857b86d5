// This fuzz target parses lines of PMI. However the bytes are cut, the same lines must result, and
// the parts of a parsed command must lie inside its line.

#include "scored/job/pmi/pmi_line.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using score::shepherd::PmiLineReader;

std::vector<std::string> lines_of(std::string_view bytes, std::size_t step) {
  PmiLineReader reader;
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    reader.feed(bytes.substr(0, step));
    bytes.remove_prefix(std::min(step, bytes.size()));
    for (auto line = reader.next(); line && *line; line = reader.next()) lines.emplace_back(**line);
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto lines = lines_of(bytes, 7);
  SCORE_ASSERT(lines == lines_of(bytes, 4096), "cuts changed the lines");
  for (const auto& line : lines) {
    const auto command = score::shepherd::parse_pmi_line(line);
    if (!command) continue;
    SCORE_ASSERT(!command->name.empty());
    for (const auto& [key, value] : command->arguments) {
      SCORE_ASSERT(!key.empty() && key.data() >= line.data());
      SCORE_ASSERT(value.data() + value.size() <= line.data() + line.size());
    }
  }
  return 0;
}
