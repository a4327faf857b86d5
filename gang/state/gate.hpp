#pragma once
// A gate makes the decisions about jobs outside the matrix: limits of users and accounts, and their
// fair shares. The placer asks it. The owner of the gate does the accounting and calls
// Cluster::reorder() when answers have changed. The gate is never asked about steps and overlay
// jobs, which take no cores of their own.

#include "gang/state/job.hpp"

#include <cstdint>
#include <string>

namespace score::gang {

class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  virtual ~Gate() = default;

  // Returns whether a waiting job may have a place on this many nodes now.
  [[nodiscard]] virtual bool is_open(const Job& job, std::size_t nodes) const = 0;
  // Returns the reason why it may not, in one line; empty if it may.
  [[nodiscard]] virtual std::string why_closed(const Job& job, std::size_t nodes) const = 0;
  // Returns its place among waiting jobs of its queue and priority; a smaller one is tried earlier.
  [[nodiscard]] virtual std::int64_t rank(const Job& job) const = 0;
  // Returns the factor of its weight, at least 1.
  [[nodiscard]] virtual std::uint32_t boost(const Job& job) const = 0;

  // These report that the job has a place now (Job::cells), or gives it back.
  virtual void placed(const Job& job) = 0;
  virtual void unplaced(const Job& job) = 0;
};

}  // namespace score::gang
