// This fuzz target parses logs in the Standard Workload Format. An accepted log must be a valid
// workload.

#include "bench/scsim/workload.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto workload = score::scsim::parse_swf(text, "log");
  double last = 0;
  for (const auto& job : workload.jobs) {
    const bool is_sound = job.submit_s >= last && job.run_s > 0 && job.nodes >= 1 &&
                          job.nodes <= workload.nodes && job.number >= 1;
    if (!is_sound) std::abort();
    last = job.submit_s;
  }
  return 0;
}
