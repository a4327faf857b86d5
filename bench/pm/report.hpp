// What scbench-pm prints: one line a measurement, for people or as one JSON object.
#pragma once

#include "bench/pm/harness.hpp"
#include "bench/pm/options.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace score::bench {

// One size: PM beside its raw baseline and TCP, measured in the same rounds.
struct Row {
  std::size_t size = 0;
  Spread pm_us, raw_us, tcp_us;  // one way
  Spread pm_mb, raw_mb, tcp_mb;  // 10^6 bytes a second
};

void print_row(const Options& options, const Row& row);

// Memory of a node for 1,000 peers, beside GigaE PM and TCP.
void print_memory(bool json);

// A line of named values, in this order.
class Line {
 public:
  // Begins with "device" and "size".
  Line(const Options& options, std::size_t size);

  Line& add(const std::string& name, const std::string& text);
  Line& add(const std::string& name, double value, int digits);
  // Median as `name`, lowest and highest as `name`_spread.
  Line& add(const std::string& name, const Spread& spread, int digits);
  // Ends with the method and prints.
  void print();

 private:
  const Options& options_;
  std::vector<std::pair<std::string, std::string>> values_;  // name, JSON text
};

// 0 stands for "not measured".
double ratio(double a, double b);
// Of values of the same rounds, round by round.
Spread ratios_of(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace score::bench
