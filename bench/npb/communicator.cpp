#include "bench/npb/communicator.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace score::npb {

namespace {

// a + b and b + a are the same bits, so every rank gets the same sum.
template <class T>
void sum_by_doubling(Communicator& network, Rank first, Rank count, std::span<T> values) {
  std::vector<T> theirs(values.size());
  for (Rank bit = 1; bit < count; bit *= 2) {
    const Rank other = first + ((network.rank() - first) ^ bit);
    exchange(network, other, std::span<const T>(values), std::span<T>(theirs));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += theirs[i];
  }
}

}  // namespace

void Communicator::sum_among(Rank first, Rank count, std::span<double> values) {
  sum_by_doubling(*this, first, count, values);
}

void Communicator::sum(std::span<std::int64_t> values) {
  sum_by_doubling(*this, 0, size(), values);
}

// By dissemination, for any number of ranks.
void Communicator::barrier() {
  const std::byte out{};
  std::byte in{};
  for (Rank distance = 1; distance < size(); distance *= 2) {
    const Outgoing send{(rank() + distance) % size(), std::span(&out, 1)};
    const Incoming receive{(rank() + size() - distance) % size(), std::span(&in, 1)};
    transfer(std::span(&send, 1), std::span(&receive, 1));
  }
}

void Communicator::all_to_all(std::span<const std::byte> out,
                              std::span<const std::size_t> out_bytes, std::span<std::byte> in,
                              std::span<const std::size_t> in_bytes) {
  std::vector<Outgoing> sends(size());
  std::vector<Incoming> receives(size());
  std::size_t sent = 0;
  std::size_t received = 0;
  for (Rank i = 0; i < size(); ++i) {
    sends[i] = {i, out.subspan(sent, out_bytes[i])};
    receives[i] = {i, in.subspan(received, in_bytes[i])};
    sent += out_bytes[i];
    received += in_bytes[i];
  }
  if (!sends[rank()].bytes.empty()) {
    std::memcpy(receives[rank()].bytes.data(), sends[rank()].bytes.data(), out_bytes[rank()]);
  }
  // Each rank begins with a different one and leaves out itself.
  std::rotate(sends.begin(), sends.begin() + rank(), sends.end());
  transfer(std::span(sends).subspan(1), receives);
}

}  // namespace score::npb
