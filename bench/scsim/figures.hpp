#pragma once
// The figures of `scsim --figures`: each a few measures over load, as tables and as drawings.

#include "bench/scsim/report.hpp"

#include <functional>
#include <string>
#include <vector>

namespace score::scsim {

struct Measure {
  std::string title;
  // NaN: the run has no such job.
  std::function<double(const Result&)> value;
  bool is_log = false;  // the axis of its drawing
};

struct Figure {
  std::string name;  // of the command line and of the drawing's file
  std::vector<Measure> measures;
};

// slowdown, response, wait, utilisation, size, run-time, fairness, switches, memory.
std::vector<Figure> all_figures();
// Those of a list such as "slowdown,wait"; "all": all. Error: there is none of a name.
base::Result<std::vector<Figure>> figures_named(const std::string& list);
// What --plot draws without --figures.
Figure overview();

// For each workload and measure: a line per load, a column per policy.
std::string as_tables(const Figure& figure, const std::vector<Result>& results);
// SVG: a chart per workload and measure, a curve per policy over load.
std::string as_plot(const Figure& figure, const std::vector<Result>& results);

}  // namespace score::scsim
