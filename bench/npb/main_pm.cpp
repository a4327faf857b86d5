// Implements npb-pm, which runs a kernel on PM; the arguments are KERNEL CLASS. It uses the context
// given to this process, or that of an address file (PM_ADDRESS_FILE, PM_RANK).
#include "bench/npb/pm_communicator.hpp"
#include "bench/npb/run.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  try {
    const auto options = score::npb::parse_options({argv, static_cast<std::size_t>(argc)});
    if (!options) return 2;
    pm::Context context;
    score::npb::PmCommunicator network(context);
    return score::npb::run_kernel(*options, network);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "npb-pm: %s\n", error.what());
    return 1;
  }
}
