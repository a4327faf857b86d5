// What the kernels need of a network: the ranks of one job, which exchange bytes in pairs, and the
// few collective operations that follow from it. Implemented over PM (pm_communicator.hpp), over
// MPI (mpi_communicator.hpp) and over bare datagrams (udp_communicator.hpp); the kernels know none.
//
// All functions are collective among the ranks they concern: each of them calls, in the same order.
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
  // 1 ... 64, where a kernel is to run.
  [[nodiscard]] virtual Rank size() const = 0;

  // Sends and receives all of these, at once and in any order; ends when both is done. At most one
  // of each for a pair of ranks; what one sends the other receives with the same length. A failing
  // network is an exception.
  virtual void transfer(std::span<const Outgoing> out, std::span<const Incoming> in) = 0;

  // Sums element by element over the ranks first ... first + count - 1, this one among them; the
  // same bits on each.
  virtual void sum_among(Rank first, Rank count, std::span<double> values);

  // ... over all ranks.
  virtual void sum(std::span<double> values) { sum_among(0, size(), values); }

  virtual void sum(std::span<std::int64_t> values);

  // Ends when all have come.
  virtual void barrier();

  // Part i of `out`, out_bytes[i] long, goes to rank i; part i of `in` comes from there. Parts lie
  // one behind the other.
  virtual void all_to_all(std::span<const std::byte> out, std::span<const std::size_t> out_bytes,
                          std::span<std::byte> in, std::span<const std::size_t> in_bytes);

  // From now on `meter` counts each received part. Null: none does.
  void count_with(Meter* meter) { meter_ = meter; }

 protected:
  // A part of a transfer has come as a whole.
  void count_part() {
    if (meter_ != nullptr) meter_->tick();
  }

 private:
  Meter* meter_ = nullptr;
};

// Sends to and receives from one other rank. Nothing happens if that is this rank itself.
template <class T>
void exchange(Communicator& network, Rank other, std::span<const T> out, std::span<T> in) {
  const Outgoing sent{other, std::as_bytes(out)};
  const Incoming received{other, std::as_writable_bytes(in)};
  if (other != network.rank()) network.transfer({&sent, 1}, {&received, 1});
}

}  // namespace score::npb
