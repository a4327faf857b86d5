// This fuzz target gives scored-hooks any request. What it accepts may put only names into the
// environment of a hook.
#include "base/assert.hpp"
#include "scored/privileged/hooks/request.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto request = score::hooks::parse_request(bytes, data[0] % 2 == 1);
  if (!request) return 0;
  SCORE_ASSERT(bytes.size() == sizeof(score::hooks::HookRequest));
  for (const std::string& line : score::hooks::environment_of(*request)) {
    const bool is_ours = line.starts_with("SCORE_");
    SCORE_ASSERT(!is_ours || line.find_first_of(" \n;$`\\/'\"\033") == std::string::npos, "{}",
                 line);
  }
  return 0;
}
