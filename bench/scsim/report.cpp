// This file is tested by simulate_test.cpp.
#include "bench/scsim/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace score::scsim {

namespace {

constexpr double kSlowdownBound_s = 10;
constexpr double kPrompt_s = 0.2;

double response_of(const JobResult& f) {
  return f.end_s - f.job.submit_s;
}

double bounded_slowdown(const JobResult& f) {
  return std::max(1.0, response_of(f) / std::max(f.job.run_s, kSlowdownBound_s));
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double p95(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * 0.95);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

// Returns the part of the jobs that began within two slices, of those whose memory was free.
double prompt_of(const std::vector<JobResult>& job_results, bool counts_in_order) {
  std::size_t fitted = 0;
  std::size_t prompt = 0;
  for (const JobResult& f : job_results) {
    if (!f.fits || (f.is_in_order && !counts_in_order)) continue;
    ++fitted;
    prompt += f.start_s - f.job.submit_s <= kPrompt_s ? 1 : 0;
  }
  return fitted > 0 ? static_cast<double>(prompt) / static_cast<double>(fitted) : 1;
}

double near_of(const std::vector<JobResult>& job_results, std::uint32_t switch_nodes) {
  std::size_t small = 0;
  std::size_t near = 0;
  for (const JobResult& f : job_results) {
    if (f.job.nodes < 2 || f.job.nodes > switch_nodes) continue;
    ++small;
    near += f.is_near ? 1 : 0;
  }
  return small > 0 ? static_cast<double>(near) / static_cast<double>(small) : 1;
}

template <typename Keep>
Figures figures_of(const std::vector<JobResult>& job_results, Keep&& keep) {
  std::vector<double> wait;
  std::vector<double> response;
  std::vector<double> slowdown;
  for (const JobResult& f : job_results) {
    if (!keep(f)) continue;
    wait.push_back(f.start_s - f.job.submit_s);
    response.push_back(response_of(f));
    slowdown.push_back(bounded_slowdown(f));
  }
  return {wait.size(),   mean(wait),     p95(wait),    mean(response),
          p95(response), mean(slowdown), p95(slowdown)};
}

// Returns Jain's index (Jain, Chiu, Hawe 1984): 1 if all users have the same slowdown.
double fairness_of(const std::vector<JobResult>& job_results) {
  std::map<std::uint32_t, std::vector<double>> users;
  for (const JobResult& f : job_results) users[f.job.user].push_back(bounded_slowdown(f));
  double sum = 0;
  double squares = 0;
  for (const auto& [user, slowdowns] : users) {
    const double x = mean(slowdowns);
    sum += x;
    squares += x * x;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(users.size()) * squares) : 1;
}

struct SizeBounds {
  const char* name;
  double from, to;
};

constexpr SizeBounds kSizes[] = {{"1 node", 0, 0},  // set below: exactly one node
                                 {"to 1/16", 0, 1.0 / 16},
                                 {"to 1/4", 1.0 / 16, 1.0 / 4},
                                 {"to 1/2", 1.0 / 4, 1.0 / 2},
                                 {"to all", 1.0 / 2, 1}};
constexpr SizeBounds kRuns[] = {
    {"to 1 min", 0, 60}, {"to 10 min", 60, 600}, {"to 1 h", 600, 3600}, {"over 1 h", 3600, 1e18}};

double delivered(const SimulationRun& run, double until_s) {
  double work = 0;
  for (const JobResult& f : run.job_results) {
    if (f.end_s <= until_s) {
      work += f.job.run_s * f.job.nodes;
    } else if (f.start_s < until_s) {  // as if it ran at a constant rate
      work += f.job.run_s * f.job.nodes * (until_s - f.start_s) / (f.end_s - f.start_s);
    }
  }
  return work;
}

}  // namespace

PolicyResult result_of(const Workload& workload, const SimOptions& options, double load,
                       const SimulationRun& run) {
  PolicyResult out;
  out.workload = workload.name;
  out.policy = options.policy.name;
  out.load = load;
  out.nodes = workload.nodes;
  out.all = figures_of(run.job_results, [](const JobResult&) { return true; });
  const double span = run.last_submit_s;
  if (span > 0) out.utilisation = delivered(run, span) / span / workload.nodes;
  out.prompt = prompt_of(run.job_results, false);
  out.prompt_of_all = prompt_of(run.job_results, true);
  out.near = near_of(run.job_results, options.switch_nodes);
  out.fairness = fairness_of(run.job_results);
  out.switches = run.switches;
  out.layouts = run.layouts;
  out.most_waiting = run.most_waiting;
  out.most_rows = run.most_rows;
  out.memory_high = run.memory_high;
  out.pagings = run.pagings;
  out.wall_s = run.wall_s;
  for (const SizeBounds& b : kSizes) {
    out.by_size.push_back({b.name, figures_of(run.job_results, [&](const JobResult& f) {
                             if (f.job.nodes == 1 || b.to == 0)
                               return f.job.nodes == 1 && b.to == 0;
                             const double part = double(f.job.nodes) / workload.nodes;
                             return part > b.from && part <= b.to;
                           })});
  }
  for (const SizeBounds& b : kRuns) {
    out.by_run.push_back({b.name, figures_of(run.job_results, [&](const JobResult& f) {
                            return f.job.run_s > b.from && f.job.run_s <= b.to;
                          })});
  }
  return out;
}

std::string as_table(const std::vector<PolicyResult>& results) {
  std::string out = fmt::format(
      "{:<14} {:<12} {:>4} {:>6} {:>6} {:>9} {:>10} {:>9} {:>10} {:>10} {:>6} {:>10} {:>5} {:>5} "
      "{:>7} {:>7} {:>7} {:>7}\n",
      "workload", "policy", "load", "nodes", "util", "slowdown", "slow p95", "wait s", "resp p95 s",
      "p95 >1h s", "fair", "switches", "queue", "mem", "took s", "prompt", "of all", "near");
  for (const PolicyResult& r : results) {
    out += fmt::format(
        "{:<14} {:<12} {:>4.2f} {:>6} {:>6.3f} {:>9.2f} {:>10.2f} {:>9.0f} {:>10.0f} {:>10.0f} "
        "{:>6.3f} {:>10} {:>5} {:>5.2f} "
        "{:>7.2f} {:>7.4f} {:>7.4f} {:>7.4f}\n",
        r.workload.substr(0, 14), r.policy, r.load, r.nodes, r.utilisation,
        r.all.bounded_slowdown_mean, r.all.bounded_slowdown_p95, r.all.wait_mean_s,
        r.all.response_p95_s, r.by_run.back().figures.response_p95_s, r.fairness, r.switches,
        r.most_waiting, r.memory_high, r.wall_s, r.prompt, r.prompt_of_all, r.near);
  }
  return out;
}

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

std::string fields_of(const Figures& f) {
  return fmt::format(
      "\"jobs\": {}, \"wait_mean_s\": {:.3f}, \"wait_p95_s\": {:.3f}, \"response_mean_s\": {:.3f}, "
      "\"response_p95_s\": {:.3f}, \"bounded_slowdown_mean\": {:.4f}, \"bounded_slowdown_p95\": "
      "{:.4f}",
      f.jobs, f.wait_mean_s, f.wait_p95_s, f.response_mean_s, f.response_p95_s,
      f.bounded_slowdown_mean, f.bounded_slowdown_p95);
}

std::string classes_of(const std::vector<ClassFigures>& classes) {
  std::string out;
  for (const ClassFigures& c : classes) {
    out += fmt::format("{}{{\"class\": {}, {}}}", out.empty() ? "" : ", ", quoted(c.name),
                       fields_of(c.figures));
  }
  return "[" + out + "]";
}

}  // namespace

std::string as_json(const std::vector<PolicyResult>& results) {
  std::string out = "{\"results\": [";
  for (std::size_t i = 0; i < results.size(); ++i) {
    const PolicyResult& r = results[i];
    out += fmt::format(
        "{}\n {{\"workload\": {}, \"policy\": {}, \"load\": {:.3f}, \"nodes\": {}, {}, "
        "\"utilisation\": {:.4f}, \"fairness\": {:.4f}, \"switches\": {}, \"layouts\": {}, "
        "\"most_waiting\": {}, \"most_rows\": {}, \"memory_high\": {:.4f}, \"pagings\": {}, "
        "\"prompt\": {:.4f}, \"prompt_of_all\": {:.4f}, \"near\": {:.4f}, \"wall_s\": {:.3f}, "
        "\"by_size\": {}, \"by_run_time\": {}}}",
        i == 0 ? "" : ",", quoted(r.workload), quoted(r.policy), r.load, r.nodes, fields_of(r.all),
        r.utilisation, r.fairness, r.switches, r.layouts, r.most_waiting, r.most_rows,
        r.memory_high, r.pagings, r.prompt, r.prompt_of_all, r.near, r.wall_s,
        classes_of(r.by_size), classes_of(r.by_run));
  }
  return out + "\n]}\n";
}

std::string as_records(const Workload& workload, const SimOptions& options,
                       const SimulationRun& run) {
  std::vector<JobResult> job_results = run.job_results;
  std::sort(job_results.begin(), job_results.end(),
            [](const JobResult& a, const JobResult& b) { return a.job.number < b.job.number; });
  std::string out = fmt::format(
      "{{\"workload\": {}, \"policy\": {}, \"nodes\": {}, \"malformed\": {}, \"jobs\": [",
      quoted(workload.name), quoted(options.policy.name), workload.nodes, workload.malformed);
  for (std::size_t i = 0; i < job_results.size(); ++i) {
    const JobResult& f = job_results[i];
    const std::chrono::duration<double> limit = request_of(f.job, options).limit;
    out += fmt::format(
        "{}\n {{\"job\": {}, \"user\": {}, \"nodes\": {}, \"memory\": {:.6f}, \"submit_s\": "
        "{:.6f}, "
        "\"run_s\": {:.6f}, \"limit_s\": {:.6f}, \"start_s\": {:.6f}, \"end_s\": {:.6f}}}",
        i == 0 ? "" : ",", f.job.number, f.job.user, f.job.nodes, f.job.memory, f.job.submit_s,
        f.job.run_s, limit.count(), f.start_s, f.end_s);
  }
  return out + "\n]}\n";
}

}  // namespace score::scsim
