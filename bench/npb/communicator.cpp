#include "bench/npb/communicator.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

namespace score::npb {

namespace {

template <class T>
void send(Communicator& network, Rank to, std::span<T> values) {
  const Outgoing out{to, std::as_bytes(values)};
  network.transfer({&out, 1}, {});
}

template <class T>
void receive(Communicator& network, Rank from, std::span<T> values) {
  const Incoming in{from, std::as_writable_bytes(values)};
  network.transfer({}, {&in, 1});
}

// The sums a + b and b + a have the same bits, so every rank gets the same sum. Ranks beyond a
// power of two first give their values to one of the other ranks, and get the sum from it.
template <class T>
void sum_by_doubling(Communicator& network, Rank first, Rank count, std::span<T> values) {
  const Rank own = network.rank() - first;
  const Rank doubled = std::bit_floor(count);
  if (own >= doubled) {
    send(network, first + own - doubled, values);
    receive(network, first + own - doubled, values);
    return;
  }
  std::vector<T> theirs(values.size());
  const auto add_theirs = [&] {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += theirs[i];
  };
  const bool has_extra = own + doubled < count;
  if (has_extra) {
    receive(network, first + own + doubled, std::span(theirs));
    add_theirs();
  }
  for (Rank bit = 1; bit < doubled; bit *= 2) {
    exchange(network, first + (own ^ bit), std::span<const T>(values), std::span<T>(theirs));
    add_theirs();
  }
  if (has_extra) send(network, first + own + doubled, values);
}

}  // namespace

void Communicator::sum_among(Rank first, Rank count, std::span<double> values) {
  sum_by_doubling(*this, first, count, values);
}

void Communicator::sum(std::span<std::int64_t> values) {
  sum_by_doubling(*this, 0, size(), values);
}

// Uses dissemination, which works for any number of ranks.
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
  // Each rank begins with a different peer and skips itself.
  std::rotate(sends.begin(), sends.begin() + rank(), sends.end());
  transfer(std::span(sends).subspan(1), receives);
}

}  // namespace score::npb
