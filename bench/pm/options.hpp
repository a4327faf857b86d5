// Reads the options of scbench-pm.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace score::bench {

struct BenchOptions {
  std::string device = "shmem";
  std::vector<std::size_t> sizes{8, 1 << 20};  // bytes
  bool sizes_given = false;
  unsigned rounds = 5;
  unsigned count = 0;        // exchanges per round; 0 = chosen by size
  std::string auth = "key";  // key, tag or compare
  double loss = 0;           // percent of the frames
  unsigned garbage = 0;      // frames per second
  bool cut_bursts = false;
  bool hits = false;
  bool memory = false;
  bool json = false;

  bool is_shmem() const { return device == "shmem"; }

  bool is_ethernet() const { return device == "ethernet"; }
};

// Throws std::runtime_error with the reason. With --help, prints the usage and ends the program.
BenchOptions read_options(int argc, char** argv);

}  // namespace score::bench
