#pragma once
// Makes the figures of `scsim --figures`: each shows a few measures over load, as tables and as
// drawings.

#include "bench/scsim/report.hpp"

#include <functional>
#include <string>
#include <vector>

namespace score::scsim {

struct Measure {
  std::string title;
  // Returns NaN if the run has no such job.
  std::function<double(const PolicyResult&)> value;
  bool is_log = false;  // scale of the drawing's axis
};

struct Figure {
  std::string name;  // in the command line and in the drawing's file name
  std::vector<Measure> measures;
};

// Returns slowdown, response, wait, utilisation, size, run-time, fairness, switches, memory.
std::vector<Figure> all_figures();
// Returns the figures of a list such as "slowdown,wait"; "all" selects all. Fails if a name is
// unknown.
base::Result<std::vector<Figure>> figures_named(const std::string& list);
// Returns the figure that --plot draws without --figures.
Figure overview();

// Makes a table for each workload and measure: a line per load, a column per policy.
std::string as_tables(const Figure& figure, const std::vector<PolicyResult>& results);
// Makes an SVG: a chart per workload and measure, a curve per policy over load.
std::string as_plot(const Figure& figure, const std::vector<PolicyResult>& results);

}  // namespace score::scsim
