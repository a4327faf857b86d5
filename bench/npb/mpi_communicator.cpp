#include "bench/npb/mpi_communicator.hpp"

#include <climits>

#include <stdexcept>

namespace score::npb {

namespace {

constexpr int kTag = 1;

int to_int(std::size_t bytes) {
  if (bytes > INT_MAX) throw std::length_error("a message is longer than MPI can count");
  return static_cast<int>(bytes);
}

// Converts the lengths of the parts, and their offsets, to the types of MPI.
struct Parts {
  explicit Parts(std::span<const std::size_t> bytes) {
    std::size_t begin = 0;
    for (const std::size_t each : bytes) {
      counts.push_back(to_int(each));
      begins.push_back(to_int(begin));
      begin += each;
    }
  }

  std::vector<int> counts, begins;
};

}  // namespace

MpiCommunicator::MpiCommunicator() {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rank_ = static_cast<Rank>(rank);
  size_ = static_cast<Rank>(size);
}

void MpiCommunicator::transfer(std::span<const Outgoing> out, std::span<const Incoming> in) {
  requests_.clear();
  for (const Incoming& part : in) {
    if (part.from == rank_ || part.bytes.empty()) continue;
    MPI_Irecv(part.bytes.data(), to_int(part.bytes.size()), MPI_BYTE, static_cast<int>(part.from),
              kTag, MPI_COMM_WORLD, &requests_.emplace_back());
  }
  for (const Outgoing& part : out) {
    if (part.to == rank_ || part.bytes.empty()) continue;
    MPI_Isend(part.bytes.data(), to_int(part.bytes.size()), MPI_BYTE, static_cast<int>(part.to),
              kTag, MPI_COMM_WORLD, &requests_.emplace_back());
  }
  MPI_Waitall(to_int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
}

void MpiCommunicator::sum(std::span<double> values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), to_int(values.size()), MPI_DOUBLE, MPI_SUM,
                MPI_COMM_WORLD);
}

void MpiCommunicator::sum(std::span<std::int64_t> values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), to_int(values.size()), MPI_INT64_T, MPI_SUM,
                MPI_COMM_WORLD);
}

void MpiCommunicator::barrier() {
  MPI_Barrier(MPI_COMM_WORLD);
}

void MpiCommunicator::all_to_all(std::span<const std::byte> out,
                                 std::span<const std::size_t> out_bytes, std::span<std::byte> in,
                                 std::span<const std::size_t> in_bytes) {
  const Parts sent(out_bytes);
  const Parts received(in_bytes);
  MPI_Alltoallv(out.data(), sent.counts.data(), sent.begins.data(), MPI_BYTE, in.data(),
                received.counts.data(), received.begins.data(), MPI_BYTE, MPI_COMM_WORLD);
}

// ---- two levels ---------------------------------------------------------------------------------

NodeAwareCommunicator::NodeAwareCommunicator() {
  const int rank_now = static_cast<int>(rank());
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_now, MPI_INFO_NULL, &inside_);
  int rank_inside = 0;
  MPI_Comm_rank(inside_, &rank_inside);
  MPI_Comm_split(MPI_COMM_WORLD, rank_inside == 0 ? 0 : MPI_UNDEFINED, rank_now, &leaders_);
}

NodeAwareCommunicator::~NodeAwareCommunicator() {
  MPI_Comm_free(&inside_);
  if (leaders_ != MPI_COMM_NULL) MPI_Comm_free(&leaders_);
}

void NodeAwareCommunicator::sum_among(Rank first, Rank count, std::span<double> values) {
  if (count == size()) {
    sum(values);
  } else {
    Communicator::sum_among(first, count, values);
  }
}

void NodeAwareCommunicator::sum(std::span<double> values) {
  const int count = to_int(values.size());
  const bool leads = leaders_ != MPI_COMM_NULL;
  MPI_Reduce(leads ? MPI_IN_PLACE : values.data(), values.data(), count, MPI_DOUBLE, MPI_SUM, 0,
             inside_);
  if (leads) {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), count, MPI_DOUBLE, MPI_SUM, leaders_);
  }
  MPI_Bcast(values.data(), count, MPI_DOUBLE, 0, inside_);
}

}  // namespace score::npb
