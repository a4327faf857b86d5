// Implements npb-mpich and npb-openmpi, which run a kernel on MPI; the arguments are KERNEL CLASS.
#include "bench/npb/mpi_communicator.hpp"
#include "bench/npb/run.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 2;
  try {
    if (const auto options = score::npb::parse_options({argv, static_cast<std::size_t>(argc)})) {
      score::npb::MpiCommunicator network;
      code = score::npb::run_kernel(*options, network);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "npb: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return code;
}
