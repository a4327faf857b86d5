// Prints the results of scbench-pm: one line per measurement, as text or as one JSON object.
#pragma once

#include "bench/pm/harness.hpp"
#include "bench/pm/options.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace score::bench {

// Holds the results for one size: PM, its raw baseline and TCP, measured in the same rounds.
struct ReportRow {
  std::size_t size = 0;
  Spread pm_us, raw_us, tcp_us;  // one way
  Spread pm_mb, raw_mb, tcp_mb;  // 10^6 bytes per second
};

void print_row(const BenchOptions& options, const ReportRow& row);

// Prints the memory of a node for 1,000 peers, compared with GigaE PM and TCP.
void print_memory(bool json);

// Prints a line of named values, in the order in which they were added.
class ReportLine {
 public:
  // Begins with "device" and "size".
  ReportLine(const BenchOptions& options, std::size_t size);

  ReportLine& add(const std::string& name, const std::string& text);
  ReportLine& add(const std::string& name, double value, int digits);
  // Adds the median as `name`, the lowest and highest value as `name`_spread, and the samples.
  ReportLine& add(const std::string& name, const Spread& spread, int digits);
  // Adds the values of the rounds as `name`_samples; as text they are left out.
  ReportLine& add_samples(const std::string& name, const Spread& spread, int digits);
  // Adds the method and prints the line.
  void print();

 private:
  const BenchOptions& options_;
  std::vector<std::pair<std::string, std::string>> values_;  // name, JSON text
};

// Returns 0 if a value was not measured.
double ratio(double a, double b);
// Returns the ratios of values of the same rounds, round by round.
Spread ratios_of(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace score::bench
