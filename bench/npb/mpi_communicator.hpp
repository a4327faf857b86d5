// Communicator over MPI; its sums, barriers and all-to-all are MPI's own.
#pragma once

#include "bench/npb/communicator.hpp"

#include <mpi.h>
#include <vector>

namespace score::npb {

class MpiCommunicator : public Communicator {
 public:
  // Between MPI_Init() and MPI_Finalize(). A failing MPI ends the program by itself.
  MpiCommunicator();

  [[nodiscard]] Rank rank() const override { return rank_; }

  [[nodiscard]] Rank size() const override { return size_; }

  void transfer(std::span<const Outgoing> out, std::span<const Incoming> in) override;
  void sum(std::span<double> values) override;
  void sum(std::span<std::int64_t> values) override;
  void barrier() override;
  void all_to_all(std::span<const std::byte> out, std::span<const std::size_t> out_bytes,
                  std::span<std::byte> in, std::span<const std::size_t> in_bytes) override;

 private:
  Rank rank_ = 0;
  Rank size_ = 1;
  std::vector<MPI_Request> requests_;
};

// Sums first inside each node, then between one rank of each node, then inside again: each value
// goes over the network once a node, not once a rank (as COSMO does).
class NodeAwareCommunicator final : public MpiCommunicator {
 public:
  NodeAwareCommunicator();
  ~NodeAwareCommunicator() override;

  // Among all ranks in two levels; among a part of them flat if that part is smaller.
  void sum_among(Rank first, Rank count, std::span<double> values) override;
  void sum(std::span<double> values) override;

 private:
  MPI_Comm inside_ = MPI_COMM_NULL;   // the ranks of this node
  MPI_Comm leaders_ = MPI_COMM_NULL;  // the first ranks of all nodes; null elsewhere
};

}  // namespace score::npb
