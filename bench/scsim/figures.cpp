// Defines the measures and makes their tables; drawings.cpp draws them. This file is tested by
// simulate_test.cpp.
#include "bench/scsim/figures.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace score::scsim {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct OfFigures {
  const char* title;
  double Figures::*value;
  bool is_log;
};

constexpr OfFigures kSlowdown[] = {
    {"mean bounded slowdown", &Figures::bounded_slowdown_mean, true},
    {"95th percentile of bounded slowdown", &Figures::bounded_slowdown_p95, true}};
constexpr OfFigures kResponse[] = {
    {"mean response, s", &Figures::response_mean_s, true},
    {"95th percentile of response, s", &Figures::response_p95_s, true}};
constexpr OfFigures kWait[] = {{"mean wait, s", &Figures::wait_mean_s, false},
                               {"95th percentile of wait, s", &Figures::wait_p95_s, false}};

template <std::size_t N>
void add_all_jobs(const OfFigures (&measures)[N], Figure& out) {
  for (const OfFigures& m : measures) {
    out.measures.push_back(
        {m.title, [m](const PolicyResult& r) { return r.all.*m.value; }, m.is_log});
  }
}

// Makes a figure of every measure of every class: six charts per class.
Figure of_classes(const char* name, std::vector<ClassFigures> PolicyResult::*classes) {
  Figure out{name, {}};
  const PolicyResult none = result_of({}, {}, 0, {});
  for (std::size_t i = 0; i < (none.*classes).size(); ++i) {
    const auto add = [&](const OfFigures& m) {
      const auto value = [classes, i, m](const PolicyResult& r) {
        const Figures& figures = (r.*classes)[i].figures;
        return figures.jobs == 0 ? kNone : figures.*m.value;
      };
      out.measures.push_back({(none.*classes)[i].name + ": " + m.title, value, m.is_log});
    };
    for (const OfFigures& m : kSlowdown) add(m);
    for (const OfFigures& m : kResponse) add(m);
    for (const OfFigures& m : kWait) add(m);
  }
  return out;
}

Measure utilisation() {
  return {"utilisation", [](const PolicyResult& r) { return r.utilisation; }};
}

}  // namespace

std::vector<Figure> all_figures() {
  Figure slowdown{"slowdown", {}};
  add_all_jobs(kSlowdown, slowdown);
  Figure response{"response", {}};
  add_all_jobs(kResponse, response);
  Figure wait{"wait", {}};
  add_all_jobs(kWait, wait);
  const auto switches = [](const PolicyResult& r) { return static_cast<double>(r.switches); };
  return {
      slowdown,
      response,
      wait,
      {"utilisation", {utilisation()}},
      of_classes("size", &PolicyResult::by_size),
      of_classes("run-time", &PolicyResult::by_run),
      {"fairness",
       {{"fairness over users (Jain's index)", [](const PolicyResult& r) { return r.fairness; }}}},
      {"switches", {{"gang switches", switches}}},
      {"memory",
       {{"memory high water, of a node", [](const PolicyResult& r) { return r.memory_high; }}}}};
}

Figure overview() {
  Figure out{"overview", {}};
  out.measures.push_back(all_figures().front().measures.front());
  out.measures.push_back({"95th percentile of response over 1 h, h", [](const PolicyResult& r) {
                            return r.by_run.back().figures.response_p95_s / 3600;
                          }});
  out.measures.push_back(utilisation());
  return out;
}

base::Result<std::vector<Figure>> figures_named(const std::string& list) {
  const std::vector<Figure> all = all_figures();
  if (list == "all") return all;
  std::vector<Figure> out;
  for (const std::string_view name : base::split(list, ',')) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Figure& f) { return f.name == name; });
    if (found == all.end()) {
      std::string known;
      for (const Figure& f : all) known += (known.empty() ? "" : ", ") + f.name;
      return base::fail(base::Errc::NotFound, "no figure '{}'; known: {}", name, known);
    }
    out.push_back(*found);
  }
  return out;
}

namespace {

template <typename Key>
auto unique_of(const std::vector<PolicyResult>& results, Key&& key) {
  std::vector<std::decay_t<decltype(key(results.front()))>> out;
  for (const PolicyResult& r : results) {
    if (std::find(out.begin(), out.end(), key(r)) == out.end()) out.push_back(key(r));
  }
  return out;
}

std::string cell(double value) {
  if (std::isnan(value)) return fmt::format("{:>13}", "-");
  return value >= 1000 ? fmt::format("{:>13.0f}", value) : fmt::format("{:>13.3f}", value);
}

std::string table_of(const Measure& measure, const std::vector<PolicyResult>& results,
                     const std::string& workload) {
  const auto policies = unique_of(results, [](const PolicyResult& r) { return r.policy; });
  std::string out = fmt::format("\n{}: {}\n{:>5}", workload, measure.title, "load");
  for (const std::string& policy : policies) out += fmt::format("{:>13}", policy);
  for (const double load : unique_of(results, [](const PolicyResult& r) { return r.load; })) {
    std::string line = fmt::format("\n{:>5.2f}", load);
    bool is_any = false;
    for (const std::string& policy : policies) {
      const auto found = std::find_if(results.begin(), results.end(), [&](const PolicyResult& r) {
        return r.workload == workload && r.load == load && r.policy == policy;
      });
      is_any = is_any || found != results.end();
      line += cell(found == results.end() ? kNone : measure.value(*found));
    }
    if (is_any) out += line;
  }
  return out + "\n";
}

}  // namespace

std::string as_tables(const Figure& figure, const std::vector<PolicyResult>& results) {
  std::string out;
  for (const std::string& workload :
       unique_of(results, [](const PolicyResult& r) { return r.workload; })) {
    for (const Measure& measure : figure.measures) out += table_of(measure, results, workload);
  }
  return out;
}

}  // namespace score::scsim
