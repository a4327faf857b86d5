// The kernels EP, CG, FT, IS, MG, LU, SP and BT of the NAS Parallel Benchmarks, written from their
// specification (RNR-94-007 and the problem sizes of NPB 3), over any network.
#pragma once

#include "bench/npb/communicator.hpp"
#include "bench/npb/meter.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace score::npb {

struct Verdict {
  bool is_right = false;
  std::string detail;  // the comparison, for a person
};

// All functions are collective.
class Kernel {
 public:
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  virtual ~Kernel() = default;

  // The part that is not timed. Before each run().
  virtual void prepare() = 0;
  // The timed part. `meter` counts pieces of computing; the network counts messages with its own.
  virtual void run(Meter& meter) = 0;
  // Of the last run; the same on all ranks.
  [[nodiscard]] virtual Verdict verify() = 0;
};

// `name` is ep, cg, ft, is, mg, lu, sp or bt; `size` S, W or A, of cg and mg also B. Null if there
// is no such kernel, or it cannot be divided among this number of ranks: a power of two, of sp and
// bt a square, of lu any number, at most 64. `network` outlives the kernel.
std::unique_ptr<Kernel> make_kernel(std::string_view name, char size, Communicator& network);

std::unique_ptr<Kernel> make_ep(char size, Communicator& network);
std::unique_ptr<Kernel> make_cg(char size, Communicator& network, int threads = 1);
std::unique_ptr<Kernel> make_ft(char size, Communicator& network);
std::unique_ptr<Kernel> make_is(char size, Communicator& network);
std::unique_ptr<Kernel> make_mg(char size, Communicator& network);
std::unique_ptr<Kernel> make_lu(char size, Communicator& network);
std::unique_ptr<Kernel> make_sp(char size, Communicator& network);
std::unique_ptr<Kernel> make_bt(char size, Communicator& network);

// True if `value` differs from `expected` by at most that part of it.
bool is_close(double value, double expected, double tolerance);
// For Verdict::detail: name, value, expected value.
std::string compared(std::string_view name, double value, double expected);

}  // namespace score::npb
