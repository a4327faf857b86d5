// Runs Linpack and CG of the COSMO paper on MPI, as cosmo-mpich and cosmo-openmpi. Each rank has
// one thread (MPI only) or several (hybrid; the first thread communicates), and sums are flat or in
// two levels.
#include "bench/cosmo/linpack.hpp"
#include "bench/npb/kernel.hpp"
#include "bench/npb/mpi_communicator.hpp"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace {

using score::npb::Communicator;

struct CosmoOptions {
  std::string_view program;  // linpack or cg
  std::string_view size;     // equations, or the class
  int threads = 1;
  bool two_levels = false;
};

std::optional<CosmoOptions> parse(std::span<char*> arguments) {
  CosmoOptions options;
  bool is_right = arguments.size() >= 3;
  for (std::size_t i = 3; is_right && i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    if (word == "--two-levels") {
      options.two_levels = true;
    } else if (word == "--threads" && i + 1 < arguments.size()) {
      options.threads = std::atoi(arguments[++i]);
      is_right = options.threads >= 1 && options.threads <= 1024;
    } else {
      is_right = false;
    }
  }
  if (!is_right) return std::nullopt;
  options.program = arguments[1];
  options.size = arguments[2];
  return options;
}

class NoMeter final : public score::npb::Meter {
 public:
  void tick() override {}
};

void report(const CosmoOptions& options, const Communicator& network, double seconds,
            bool is_right) {
  if (network.rank() != 0) return;
  std::printf("%.*s %.*s: %u ranks x %d threads: %s, %.6f s\n",
              static_cast<int>(options.program.size()), options.program.data(),
              static_cast<int>(options.size.size()), options.size.data(), network.size(),
              options.threads, is_right ? "verified" : "NOT VERIFIED", seconds);
}

int run_linpack(const CosmoOptions& options, Communicator& network) {
  const int n = std::atoi(options.size.data());
  if (n < 1 || n > 20'000) return 2;
  score::cosmo::Linpack linpack(static_cast<std::size_t>(n), options.threads, network);
  linpack.prepare();
  network.barrier();
  const double start = MPI_Wtime();
  const bool is_regular = linpack.run();
  network.barrier();
  const double seconds = MPI_Wtime() - start;
  const bool is_right = is_regular && linpack.residual() < score::cosmo::Linpack::kRightBelow;
  report(options, network, seconds, is_right);
  return is_right ? 0 : 1;
}

int run_cg(const CosmoOptions& options, Communicator& network) {
  const Communicator& known = network;
  if (options.size.size() != 1 || known.size() > 64 || (known.size() & (known.size() - 1)) != 0) {
    return 2;
  }
  const auto kernel = score::npb::make_cg(options.size[0], network, options.threads);
  if (!kernel) return 2;
  NoMeter meter;
  kernel->prepare();
  network.barrier();
  const double start = MPI_Wtime();
  kernel->run(meter);
  network.barrier();
  const double seconds = MPI_Wtime() - start;
  const bool is_right = kernel->verify().is_right;
  report(options, network, seconds, is_right);
  return is_right ? 0 : 1;
}

int run(const CosmoOptions& options) {
  std::unique_ptr<Communicator> network;
  if (options.two_levels) {
    network = std::make_unique<score::npb::NodeAwareCommunicator>();
  } else {
    network = std::make_unique<score::npb::MpiCommunicator>();
  }
  if (options.program == "linpack") return run_linpack(options, *network);
  return options.program == "cg" ? run_cg(options, *network) : 2;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int code = 2;
  try {
    if (const auto options = parse({argv, static_cast<std::size_t>(argc)})) code = run(*options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cosmo: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (code == 2) {
    std::fprintf(stderr, "usage: cosmo linpack N | cg S|W|A [--threads T] [--two-levels]\n");
  }
  MPI_Finalize();
  return code;
}
