// Implements Communicator over MPI; its sums, barriers and all-to-all are those of MPI.
#pragma once

#include "bench/npb/communicator.hpp"

#include <mpi.h>
#include <vector>

namespace score::npb {

class MpiCommunicator : public Communicator {
 public:
  // May be used only between MPI_Init() and MPI_Finalize(). If MPI fails, MPI itself ends the
  // program.
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

// Adds first inside each node, then between one rank of each node, then inside again. Each value
// goes over the network once per node, not once per rank (as COSMO does).
class NodeAwareCommunicator final : public MpiCommunicator {
 public:
  NodeAwareCommunicator();
  ~NodeAwareCommunicator() override;

  // Adds over all ranks in two levels, and over a smaller group in one.
  void sum_among(Rank first, Rank count, std::span<double> values) override;
  void sum(std::span<double> values) override;

 private:
  MPI_Comm inside_ = MPI_COMM_NULL;   // the ranks of this node
  MPI_Comm leaders_ = MPI_COMM_NULL;  // the first rank of each node; null on other ranks
};

}  // namespace score::npb
