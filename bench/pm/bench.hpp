// Makes the measurements of scbench-pm. The variants of a comparison are measured in turns, so that
// a machine that drifts affects all of them alike.
#pragma once

#include "bench/pm/baselines.hpp"
#include "bench/pm/harness.hpp"
#include "bench/pm/options.hpp"
#include "bench/pm/pm_ends.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace score::bench {

class PmBench {
 public:
  explicit PmBench(const BenchOptions& options);
  ~PmBench();
  PmBench(const PmBench&) = delete;
  PmBench& operator=(const PmBench&) = delete;

  // Measures latency and bandwidth, with the raw baseline and TCP for comparison.
  void measure(std::size_t size);
  // Measures bandwidth with and without loss.
  void measure_loss(std::size_t size);
  // Measures goodput while a sender sends garbage to the receiver, to a different port on the same
  // node, and without garbage.
  void measure_garbage(std::size_t size);
  // Compares frames with key and checksum with frames with a tag.
  void measure_auth(std::size_t size);
  // Measures remote writes with a pin-down cache that finds 100, 50 and 0 %, messages without and
  // with copies, the raw baseline and TCP.
  void measure_hits(std::size_t size);

 private:
  using Exchange = std::function<void(int side, Shared&, Amount)>;

  // Returns the path of the job's address file.
  std::string file() const { return file_with(options_.auth == "tag" ? "tag" : "key"); }

  std::string file_with(const std::string& auth) const { return directory_ / auth; }

  void write_address_file(const std::string& auth);
  void raw_ping(int side, Shared& s, Amount a) const;
  void raw_flow(int side, Shared& s, Amount a) const;
  Amount amount_for(std::size_t size) const;
  std::size_t longest_message() const;
  double latency(std::size_t size, const Exchange& exchange);
  double rate(const Side& run);
  double bandwidth(std::size_t size, const Exchange& stream);
  double write_bandwidth(std::size_t size, int hit_percent);
  double message_bandwidth(std::size_t size, bool copies);

  double pm_bandwidth(std::size_t size) { return pm_bandwidth(size, file()); }

  double pm_bandwidth(std::size_t size, const std::string& file);

  BenchOptions options_;
  TwoEnds ends_;
  std::filesystem::path directory_;
};

}  // namespace score::bench
