// This file is tested by simulate_test.cpp.
#include "bench/scsim/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace score::scsim {

namespace {

constexpr const char* kColours[] = {"#0072b2", "#009e73", "#d55e00",
                                    "#cc79a7", "#e69f00", "#56b4e9"};
constexpr double kWidth = 420, kHeight = 260, kMargin = 46;

// Makes a chart of one measure of one workload, at (x, y).
std::string chart(const std::vector<PolicyResult>& results, const std::string& workload,
                  const Measure& measure, double x, double y) {
  std::map<std::string, std::vector<std::pair<double, double>>> curves;
  double low = 1e300, high = 0, first = 1e9, last = 0;
  for (const PolicyResult& r : results) {
    if (r.workload != workload) continue;
    const double v = measure.value(r);
    auto& curve = curves[r.policy];  // even without a point, so that each policy keeps its colour
    if (!std::isfinite(v)) continue;
    curve.emplace_back(r.load, v);
    low = std::min(low, v);
    high = std::max(high, v);
    first = std::min(first, r.load);
    last = std::max(last, r.load);
  }
  if (first > last) low = high = first = last = 0;
  if (!measure.is_log) low = 0;
  const auto scale = [&](double v) {
    if (measure.is_log)
      return std::log(std::max(v, 1e-9) / low) / std::max(1e-9, std::log(high / low));
    return v / std::max(high, 1e-9);
  };
  const double w = kWidth - 2 * kMargin, h = kHeight - 2 * kMargin;
  std::string out = fmt::format(
      "<g transform=\"translate({},{})\"><text x=\"{}\" y=\"18\">{}: {}</text><rect x=\"{}\" "
      "y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/><text x=\"4\" "
      "y=\"{}\">{:.3g}</text><text x=\"4\" y=\"{}\">{:.3g}</text><text x=\"{}\" y=\"{}\">load "
      "{:.2f} to {:.2f}</text>",
      x, y, kMargin, workload.substr(0, workload.find(".swf")), measure.title, kMargin, kMargin, w,
      h, kMargin + 4, high, kMargin + h, low, kMargin, kHeight - 20, first, last);
  std::size_t index = 0;
  for (auto& [policy, points] : curves) {
    std::sort(points.begin(), points.end());
    const char* colour = kColours[index % std::size(kColours)];
    std::string line;
    for (const auto& [load, v] : points) {
      const double px = last > first ? (load - first) / (last - first) : 0.5;
      line += fmt::format("{:.1f},{:.1f} ", kMargin + px * w, kMargin + (1 - scale(v)) * h);
    }
    out += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/><text x=\"{}\" "
        "y=\"{}\" fill=\"{}\">{}</text>",
        line, colour, kMargin + 6, kMargin + 14 + 13 * static_cast<double>(index), colour, policy);
    ++index;
  }
  return out + "</g>\n";
}

}  // namespace

// Puts six charts on a line; the charts of each workload begin a new line.
std::string as_plot(const Figure& figure, const std::vector<PolicyResult>& results) {
  constexpr std::size_t kMostColumns = 6;
  std::set<std::string> workloads;
  for (const PolicyResult& r : results) workloads.insert(r.workload);
  std::string body;
  const std::size_t columns = std::min(kMostColumns, figure.measures.size());
  std::size_t line = 0;
  for (const std::string& workload : workloads) {
    for (std::size_t i = 0; i < figure.measures.size(); ++i) {
      const std::size_t row = line + i / columns;
      body += chart(results, workload, figure.measures[i],
                    kWidth * static_cast<double>(i % columns), kHeight * static_cast<double>(row));
    }
    line += (figure.measures.size() + columns - 1) / columns;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"11\"><rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
      kWidth * static_cast<double>(columns), kHeight * static_cast<double>(line), body);
}

// Puts each bar into the lowest lane that is free for its whole time.
std::string as_timeline(const PolicyResult& result, const SimulationRun& run) {
  constexpr std::size_t kMostBars = 4000;
  constexpr double kPixels = 1600;
  std::vector<JobResult> job_results = run.job_results;
  std::sort(job_results.begin(), job_results.end(),
            [](const JobResult& a, const JobResult& b) { return a.job.submit_s < b.job.submit_s; });
  if (job_results.size() > kMostBars) job_results.resize(kMostBars);
  double last = 1;
  for (const JobResult& f : job_results) last = std::max(last, f.end_s);
  const double first = job_results.empty() ? 0 : job_results.front().job.submit_s;
  const double scale = kPixels / std::max(1.0, last - first);
  std::vector<double> lanes;
  std::string bars;
  for (const JobResult& f : job_results) {
    std::size_t lane = 0;
    while (lane < lanes.size() && lanes[lane] > f.job.submit_s) ++lane;
    if (lane == lanes.size()) lanes.push_back(0);
    lanes[lane] = f.end_s;
    const double slowdown = (f.end_s - f.job.submit_s) / std::max(10.0, f.job.run_s);
    const int hue =
        static_cast<int>(120 - 120 * std::min(1.0, std::log10(std::max(1.0, slowdown))));
    const double y = 12.0 * static_cast<double>(lane);
    bars += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"3\" fill=\"#bbb\"/><rect "
        "x=\"{:.2f}\" "
        "y=\"{}\" width=\"{:.2f}\" height=\"10\" fill=\"hsl({},70%,45%)\"><title>job {}: {} nodes, "
        "run "
        "{:.0f} s, waited {:.0f} s, response {:.0f} s</title></rect>\n",
        (f.job.submit_s - first) * scale, y + 4, (f.start_s - f.job.submit_s) * scale,
        (f.start_s - first) * scale, y, std::max(0.3, (f.end_s - f.start_s) * scale), hue,
        f.job.number, f.job.nodes, f.job.run_s, f.start_s - f.job.submit_s,
        f.end_s - f.job.submit_s);
  }
  return fmt::format(
      "<!doctype html><meta charset=\"utf-8\"><title>scsim: {0}, {1}</title><style>body{{font:13px "
      "sans-serif}}</style><h1>{0}, {1}, load {2:.2f}</h1><p>{3} jobs over {4:.1f} h. A bar is a "
      "job "
      "from its start to its end (grey: it waits), green where it ran as if alone, red where it "
      "took "
      "ten times as long.</p><svg width=\"{5}\" height=\"{6}\">\n{7}</svg>\n",
      result.workload, result.policy, result.load, job_results.size(), (last - first) / 3600,
      kPixels, 12 * lanes.size(), bars);
}

}  // namespace score::scsim
