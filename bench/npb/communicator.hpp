// Defines the network that the kernels need: the ranks of one job, which exchange bytes in pairs,
// and the few collective operations that follow from it. There are implementations over PM
// (pm_communicator.hpp), over MPI (mpi_communicator.hpp) and over bare datagrams
// (udp_communicator.hpp); the kernels are independent of them.
//
// All functions are collective among the ranks they concern: each of these ranks must call them, in
// the same order.
#pragma once

#include "bench/npb/meter.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::npb {

using Rank = std::uint32_t;

struct Outgoing {
  Rank to = 0;
  std::span<const std::byte> bytes;
};

struct Incoming {
  Rank from = 0;
  std::span<std::byte> bytes;
};

class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual Rank rank() const = 0;
  // Returns 1 ... 64 if a kernel is to run.
  [[nodiscard]] virtual Rank size() const = 0;

  // Sends and receives all of these, at once and in any order; returns when both are done. Each
  // pair of ranks may have at most one of each, with the same length on both sides. A network
  // failure is an exception.
  virtual void transfer(std::span<const Outgoing> out, std::span<const Incoming> in) = 0;

  // Adds element by element over the ranks first ... first + count - 1, which must include this
  // one. All ranks get the same bits.
  virtual void sum_among(Rank first, Rank count, std::span<double> values);

  // Adds over all ranks.
  virtual void sum(std::span<double> values) { sum_among(0, size(), values); }

  virtual void sum(std::span<std::int64_t> values);

  // Returns when all ranks have called it.
  virtual void barrier();

  // Sends part i of `out`, out_bytes[i] long, to rank i and receives part i of `in` from there.
  // Parts are contiguous.
  virtual void all_to_all(std::span<const std::byte> out, std::span<const std::size_t> out_bytes,
                          std::span<std::byte> in, std::span<const std::size_t> in_bytes);

  // Makes `meter` count each received part from now on. If it is null, parts are not counted.
  void count_with(Meter* meter) { meter_ = meter; }

 protected:
  // Counts a part of a transfer that has arrived as a whole.
  void count_part() {
    if (meter_ != nullptr) meter_->tick();
  }

 private:
  Meter* meter_ = nullptr;
};

// Sends to and receives from one other rank. Does nothing if that is this rank itself.
template <class T>
void exchange(Communicator& network, Rank other, std::span<const T> out, std::span<T> in) {
  const Outgoing sent{other, std::as_bytes(out)};
  const Incoming received{other, std::as_writable_bytes(in)};
  if (other != network.rank()) network.transfer({&sent, 1}, {&received, 1});
}

}  // namespace score::npb
