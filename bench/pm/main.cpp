// Implements scbench-pm, which measures PM and its raw baselines in one run. See --help.
#include "base/exit_codes.hpp"
#include "bench/pm/bench.hpp"
#include "bench/pm/options.hpp"
#include "bench/pm/report.hpp"

#include <cstdio>
#include <exception>

namespace {

using namespace score::bench;  // NOLINT(google-build-using-namespace)

void run(BenchOptions options) {
  if (options.memory) return print_memory(options.json);
  PmBench bench(options);
  if (!options.sizes_given && (options.loss > 0 || options.garbage > 0)) options.sizes = {1 << 20};
  if (!options.sizes_given && options.hits) options.sizes = {8192, 65536, 1 << 20};
  for (const std::size_t size : options.sizes) {
    if (options.loss > 0) {
      bench.measure_loss(size);
    } else if (options.garbage > 0) {
      bench.measure_garbage(size);
    } else if (options.auth == "compare") {
      bench.measure_auth(size);
    } else if (options.hits) {
      bench.measure_hits(size);
    } else {
      bench.measure(size);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(read_options(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "scbench-pm: %s\n", e.what());
    return score::kExitError;
  }
  return 0;
}
