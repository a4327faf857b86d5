#pragma once
// What is decided about jobs outside the matrix: limits of users and accounts, and their fair
// shares. The placer asks; the owner of the gate keeps the books and calls Cluster::reorder() when
// answers have changed. Never asked about steps and overlay jobs, which take no cores of their own.

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

  // Whether a waiting job may have a place on this many nodes now.
  [[nodiscard]] virtual bool is_open(const Job& job, std::size_t nodes) const = 0;
  // Why not, in one line; empty: it may.
  [[nodiscard]] virtual std::string why_closed(const Job& job, std::size_t nodes) const = 0;
  // Its place among waiting jobs of its queue and priority: smaller is tried earlier.
  [[nodiscard]] virtual std::int64_t rank(const Job& job) const = 0;
  // The factor of its weight, at least 1.
  [[nodiscard]] virtual std::uint32_t boost(const Job& job) const = 0;

  // It has a place now (Job::cells), or gives it back.
  virtual void placed(const Job& job) = 0;
  virtual void unplaced(const Job& job) = 0;
};

}  // namespace score::gang
