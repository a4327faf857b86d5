// This fuzz target gives scored-device-guard a list of devices, as the launcher passes it on from
// the node daemon. An accepted list must deny exactly its devices. The main program runs too, for a
// cgroup that does not exist.
#include "base/assert.hpp"
#include "base/text.hpp"
#include "scored/privileged/device_guard/device_program.hpp"
#include "tests/support/privileged/ebpf_machine.hpp"

#include <algorithm>
#include <cstddef>
#include <fcntl.h>
#include <string>
#include <unistd.h>

int device_guard_main(int argc, char** argv);

namespace {

namespace guard = score::device_guard;

bool is_denied(const score::pm::EbpfProgram& program, const guard::DeviceRule& device) {
  const std::uint32_t kind = device.is_block ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
  const bpf_cgroup_dev_ctx context{6U << 16U | kind, device.major, device.minor.value_or(0)};
  const auto verdict = score::pm::EbpfMachine().run(program, &context);
  SCORE_ASSERT(verdict.has_value(), "unknown instruction, or no end");
  return *verdict == 0;
}

// The program reports every list, so its messages go to /dev/null.
int run_program(std::string text) {
  std::string words[] = {"scored-device-guard", "--job", "/no/such/cgroup"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), text.data(), nullptr};
  std::fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(null, STDERR_FILENO);
  const int code = device_guard_main(4, argv);
  std::fflush(stderr);
  dup2(kept, STDERR_FILENO);
  close(kept);
  close(null);
  return code;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string all(reinterpret_cast<const char*>(data), size);
  const std::string text(all.c_str());  // an argument of a program has no zero byte
  SCORE_ASSERT(run_program(text) == 1, "the cgroup does not exist");
  guard::DevicePolicy policy;
  for (const std::string_view word : score::split(text, ' ')) {
    if (const auto rule = guard::parse_rule(word)) policy.deny.push_back(*rule);
  }
  const auto program = guard::make_program(policy);
  for (const guard::DeviceRule& rule : policy.deny) {
    SCORE_ASSERT(is_denied(program, rule), "an entry is not denied");
    guard::DeviceRule other = rule;
    other.minor = *rule.minor + 1;
    const bool is_named = std::ranges::find(policy.deny, other) != policy.deny.end();
    SCORE_ASSERT(is_denied(program, other) == is_named);
  }
  // The names of drivers come from the kernel.
  for (const char* entry : {"char-mem", "block-loop"}) {
    for (const guard::DeviceRule& rule : guard::resolve(entry, all)) SCORE_ASSERT(!rule.minor);
  }
  return 0;
}
