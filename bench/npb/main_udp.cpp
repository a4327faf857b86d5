// Implements npb-udp, which runs a kernel over bare datagrams (udp_communicator.hpp); the arguments
// are KERNEL CLASS. NPB_RANK and NPB_RANKS identify the process. NPB_FIRST_SOCKET is the descriptor
// of rank 0's socket; those of the other ranks follow.
#include "bench/npb/run.hpp"
#include "bench/npb/udp_communicator.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

// Returns -1 if there is no such number.
long number(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text >= '0' && *text <= '9' ? std::strtol(text, nullptr, 10) : -1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto options = score::npb::parse_options({argv, static_cast<std::size_t>(argc)});
    const long rank = number("NPB_RANK");
    const long size = number("NPB_RANKS");
    const long first = number("NPB_FIRST_SOCKET");
    if (!options || rank < 0 || size > 64 || rank >= size || first < 0) return 2;
    score::npb::UdpCommunicator network(static_cast<score::npb::Rank>(rank),
                                        static_cast<score::npb::Rank>(size),
                                        static_cast<int>(first));
    return score::npb::run_kernel(*options, network);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "npb-udp: %s\n", error.what());
    return 1;
  }
}
