// Declares the kernels EP, CG, FT, IS, MG, LU, SP and BT of the NAS Parallel Benchmarks, written
// from their specification (RNR-94-007 and the problem sizes of NPB 3). They run over any network.
#pragma once

#include "bench/npb/communicator.hpp"
#include "bench/npb/meter.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace score::npb {

struct Verdict {
  bool is_right = false;
  std::string detail;  // the comparison, for display
};

// All functions are collective.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  // Does the part that is not timed. The caller must call it before each run().
  virtual void prepare() = 0;
  // Does the timed part. `meter` counts pieces of computing; the network counts messages with its
  // own meter.
  virtual void run(Meter& meter) = 0;
  // Verifies the last run; returns the same on all ranks.
  [[nodiscard]] virtual Verdict verify() = 0;
};

// `name` is ep, cg, ft, is, mg, lu, sp or bt; `size` is S, W or A, for cg and mg also B. Returns
// null if there is no such kernel, or if it cannot be divided among this number of ranks: a power
// of two, for sp and bt a square, for lu any number, at most 64. `network` must outlive the kernel.
std::unique_ptr<Kernel> make_kernel(std::string_view name, char size, Communicator& network);

std::unique_ptr<Kernel> make_ep(char size, Communicator& network);
std::unique_ptr<Kernel> make_cg(char size, Communicator& network, int threads = 1);
std::unique_ptr<Kernel> make_ft(char size, Communicator& network);
std::unique_ptr<Kernel> make_is(char size, Communicator& network);
std::unique_ptr<Kernel> make_mg(char size, Communicator& network);
std::unique_ptr<Kernel> make_lu(char size, Communicator& network);
std::unique_ptr<Kernel> make_sp(char size, Communicator& network);
std::unique_ptr<Kernel> make_bt(char size, Communicator& network);

// Returns true if `value` differs from `expected` by at most that fraction of it.
bool is_close(double value, double expected, double tolerance);
// Formats name, value and expected value for Verdict::detail.
std::string compared(std::string_view name, double value, double expected);

}  // namespace score::npb
