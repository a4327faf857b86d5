// scored-ring-guard prepares the kernel and one interface for bounded rings. See README.md.
#include "scored/privileged/ring_guard/install.hpp"
#include "scored/privileged/ring_guard/interface.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr const char* kUsage =
    "usage: scored-ring-guard INTERFACE DESCRIPTOR\n"
    "\n"
    "Makes the kernel hold Ethernet rings to the frames of their own attempt. DESCRIPTOR is that\n"
    "of an empty network namespace; it gets the interface that rings are opened on, which leads\n"
    "to INTERFACE. scored-launcher runs this program as root.\n"
    "\n"
    "  --help               print this help and exit\n";

// Returns -1 if the text is not a number.
int parse_descriptor(const char* text) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return end != text && *end == '\0' && value >= 0 && value < 1 << 20 ? static_cast<int>(value)
                                                                      : -1;
}

int prepare(const char* interface, int space, const char*& step) {
  using namespace score::ring_guard;
  int program = -1;
  int failed = install(program, step);
  if (failed == 0) failed = filter_interface(interface, program, step);
  return failed != 0 ? failed : add_ring_interface(interface, space, step);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  const int space = argc == 3 ? parse_descriptor(argv[2]) : -1;
  if (space < 0) {
    std::fputs("scored-ring-guard: expected INTERFACE DESCRIPTOR (--help explains)\n", stderr);
    return 2;
  }
  const char* step = "";
  const int failed = prepare(argv[1], space, step);
  if (failed == 0) return 0;
  std::fprintf(stderr, "scored-ring-guard: cannot bound rings on %s: %s: %s\n", argv[1], step,
               std::strerror(-failed));
  return 1;
}
