// Implements scsim, which runs the placement policies of the head on a workload; see scsim(1).
#include "base/exit_codes.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "bench/scsim/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scsim {
namespace {

constexpr std::string_view kUsage =
    R"(usage: scsim (--swf FILE[.gz] | --lublin N) [OPTION...]
Simulate the placement policies of the head on a workload.

  --swf FILE         jobs of a log in the Standard Workload Format; may be repeated
  --lublin N         N jobs of the model of Lublin and Feitelson
  --seed S           seed of the model, of memory sizes and users (1)
  --nodes N          size of the machine, 1 to 16384; jobs scale with it (as in the log; model: 256)
  --policies LIST    of matrix,dqt,slurm,fcfs,easy,conservative (all)
  --load LIST        offered loads: 0.7 or 0.7,0.9 or 0.5..0.95 in steps of 0.05 (as in the log)
  --jobs N           use only the first N jobs
  --hours H          use only the jobs that were submitted in H hours
  --from H           begin of these hours, from the start of the log (default: where most work is)
  --compress F       divide submit and run times by F (1)
  --slots N          rows of the matrix (matrix: 64, dqt and slurm: 8)
  --quantum TIME     length of a slice in ms (100; slurm: 5000)
  --long-limit S     jobs with a time limit above S seconds are long; 0: none (300)
  --long-shared S    long jobs up to this time limit share nodes until one of them waits (3600)
  --long-slots N     rows of long jobs (1)
  --long-weight N    factor of the weight of long jobs (48)
  --long-early S     long jobs up to this limit start at once all the same (900)
  --young S          scheduled time for which a job is young (30)
  --factor F         time limits are F times the run time (5)
  --no-memory        jobs need no memory
  --scarce F         jobs need F times as much of a node's memory, at most all of it (1)
  --memory MB/S      jobs that do not fit take turns in memory; each node pages at this rate
  --memory-cost P    the most percent of a turn in memory that paging takes (10)
  --memory-turn S    longest turn in memory (600)
  --idle PERCENT     percentage of jobs that are idle for 15 s after 60 s, on average (0)
  --fill PERCENT     progress by filling, in percent of a job's time out of turn (0)
  --topology N       leaf switches have N nodes each; near: the part of the jobs on one of them (0)
  --ignore-switches  place jobs without regard to switches
  --start-cost MS    time from placement until a job enters the timetable (0)
  --run-cost MS      time added to each run time (0)
  --json             print {"results": [...]}
  --plot FILE.svg    draw curves over load; with --figures: a directory for one drawing per figure
  --timeline FILE.html  draw the jobs of the last run
  --records FILE.json  write each job of the last run, with its start and end
  --figures [NAME,...]  print tables over the loads 0.5..0.95: slowdown, response, wait,
                     utilisation, size, run-time, fairness, switches, memory (all)
  --pass             submit all jobs at once and measure the passes over the queue
  --check            check all invariants after every event (slow)
  --help, --version
)";

struct ScsimOptions {
  std::vector<std::string> swf;
  std::size_t lublin = 0;
  std::uint64_t seed = 1;
  std::uint32_t nodes = 0;
  std::string policies = "matrix,dqt,slurm,fcfs,easy,conservative";
  std::vector<double> loads;
  std::size_t jobs = 0;
  std::uint32_t slots = 0;
  double quantum_ms = 0;
  bool no_memory = false;
  double scarce = 1;
  bool json = false, pass = false;
  std::string plot, timeline, records;
  std::string figures;  // names, or empty: the table of all runs
  double hours = 0, from_h = -1, compress = 1;
  double long_s = 300, long_shared_s = 3600, long_early_s = 900, young_s = 30;
  std::uint32_t long_slots = 1, long_weight = 48;
  SimOptions sim;
};

template <typename Number>
bool read(std::string_view text, Number& out, Number least, Number most) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size() && out >= least && out <= most;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> out(1);
  for (const char c : text) {
    if (c == by) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

bool read_loads(const std::string& text, std::vector<double>& out) {
  constexpr double kLeast = 0.01, kMost = 10;
  out.clear();
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    double from = 0, to = 0;
    if (!read(std::string_view(text).substr(0, dots), from, kLeast, kMost) ||
        !read(std::string_view(text).substr(dots + 2), to, from, kMost)) {
      return false;
    }
    for (int i = 0; from + 0.05 * i < to + 1e-6; ++i) out.push_back(from + 0.05 * i);
    return true;
  }
  for (const std::string& word : split(text, ',')) {
    out.emplace_back();
    if (!read(word, out.back(), kLeast, kMost)) return false;
  }
  return true;
}

// Returns true if the option is known and its value is valid.
bool read_value(std::string_view key, const std::string& value, ScsimOptions& o) {
  double percent = 0;
  if (key == "--swf") return o.swf.push_back(value), true;
  if (key == "--lublin") return read(value, o.lublin, std::size_t{1}, std::size_t{100'000'000});
  if (key == "--seed") return read(value, o.seed, std::uint64_t{0}, UINT64_MAX);
  if (key == "--nodes") return read(value, o.nodes, 1U, base::limits::kMaxNodes);
  if (key == "--policies") return o.policies = value, true;
  if (key == "--load") return read_loads(value, o.loads);
  if (key == "--jobs") return read(value, o.jobs, std::size_t{1}, SIZE_MAX);
  if (key == "--slots") return read(value, o.slots, 1U, base::limits::kMaxSlots);
  if (key == "--quantum") return read(value, o.quantum_ms, 1.0, 60'000.0);
  if (key == "--factor") return read(value, o.sim.estimate_factor, 1.0, 1000.0);
  if (key == "--topology") return read(value, o.sim.switch_nodes, 1U, base::limits::kMaxNodes);
  if (key == "--plot") return o.plot = value, true;
  if (key == "--timeline") return o.timeline = value, true;
  if (key == "--records") return o.records = value, true;
  if (key == "--hours") return read(value, o.hours, 0.01, 1e6);
  if (key == "--from") return read(value, o.from_h, 0.0, 1e6);
  if (key == "--compress") return read(value, o.compress, 0.001, 1e6);
  if (key == "--start-cost" || key == "--run-cost") {
    double& cost_s = key == "--start-cost" ? o.sim.start_cost_s : o.sim.run_cost_s;
    if (!read(value, cost_s, 0.0, 60'000.0)) return false;
    cost_s /= 1000;
    return true;
  }
  if (key == "--scarce") return read(value, o.scarce, 0.01, 100.0);
  if (key == "--memory") {
    if (!read(value, o.sim.memory.page_rate, 1.0, 1e6)) return false;
    o.sim.memory.page_rate *= 1e6;
    return true;
  }
  if (key == "--memory-cost") return read(value, o.sim.memory.cost_percent, 1U, 100U);
  if (key == "--memory-turn") {
    double seconds = 0;
    if (!read(value, seconds, 1.0, 1e6)) return false;
    o.sim.memory.turn_max = Duration{static_cast<std::int64_t>(seconds * 1e9)};
    return true;
  }
  if (key == "--long-slots") return read(value, o.long_slots, 1U, 64U);
  if (key == "--long-weight") return read(value, o.long_weight, 1U, 100U);
  if (key == "--long-early") return read(value, o.long_early_s, 0.0, 1e9);
  if (key == "--young") return read(value, o.young_s, 0.0, 1e6);
  if (key == "--long-shared") return read(value, o.long_shared_s, 0.0, 1e9);
  if (key == "--long-limit") return read(value, o.long_s, 0.0, 1e9);
  if (key == "--idle" || key == "--fill") {
    if (!read(value, percent, 0.0, 100.0)) return false;
    (key == "--idle" ? o.sim.idle_jobs : o.sim.fill) = percent / 100;
    return true;
  }
  return false;
}

bool read_flag(std::string_view key, ScsimOptions& o) {
  if (key == "--json") return o.json = true;
  if (key == "--no-memory") return o.no_memory = true;
  if (key == "--pass") return o.pass = true;
  if (key == "--ignore-switches") return o.sim.ignores_switches = true;
  if (key == "--check") return o.sim.check = true;
  return false;
}

// Reads the names of figures after --figures: several words, a list, or nothing for all figures.
int read_figures(int argc, char** argv, int i, ScsimOptions& o) {
  while (i + 1 < argc && argv[i + 1][0] != '-') {
    o.figures += (o.figures.empty() ? "" : ",") + std::string(argv[++i]);
  }
  if (o.figures.empty()) o.figures = "all";
  return i;
}

int refuse(const std::string& why) {
  fmt::print(stderr, "scsim: {}\n", why);
  return base::kExitError;
}

bool is_option(std::string_view key) {
  return kUsage.find(fmt::format("  {} ", key)) != kUsage.npos ||
         kUsage.find(fmt::format("  {}\n", key)) != kUsage.npos;
}

// Describes why an option was not accepted.
std::string fault_of(std::string_view key, const char* value) {
  const std::string shown = base::escape_terminal(key, 80);
  if (!key.starts_with('-')) return fmt::format("unexpected argument '{}'", shown);
  if (!is_option(key)) return fmt::format("unknown option '{}' (try scsim --help)", shown);
  if (value == nullptr) return fmt::format("{} needs a value", shown);
  return fmt::format("{}: '{}' is not a value that it takes, or is out of range (try scsim --help)",
                     shown, base::escape_terminal(value, 80));
}

// Checks the options that depend on each other.
std::optional<int> check_together(ScsimOptions& o) {
  if (o.swf.empty() && o.lublin == 0) return refuse("no workload: give --swf FILE or --lublin N");
  if (o.from_h >= 0 && o.hours == 0) return refuse("--from needs --hours");
  if (o.figures.empty()) return std::nullopt;
  if (o.pass) return refuse("either --figures or --pass");
  if (const auto figures = figures_named(o.figures); !figures) {
    return refuse(plain_text(figures.error()));
  }
  if (o.loads.empty()) read_loads("0.5..0.95", o.loads);
  return std::nullopt;
}

std::optional<int> read_arguments(int argc, char** argv, ScsimOptions& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view key = argv[i];
    if (key == "--help" || key == "--version") {
      fmt::print("{}", key == "--help" ? kUsage : std::string_view("scsim " SCORE_VERSION "\n"));
      return 0;
    }
    if (read_flag(key, o)) continue;
    if (key == "--figures") {
      i = read_figures(argc, argv, i, o);
      continue;
    }
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (value == nullptr || !read_value(key, value, o)) return refuse(fault_of(key, value));
    ++i;
  }
  return check_together(o);
}

base::Result<Workload> part_of(Workload workload, const ScsimOptions& o) {
  if (o.hours > 0) {
    const double from_h = o.from_h >= 0 ? o.from_h : busiest_h(workload, o.hours);
    workload = window_of(std::move(workload), from_h, o.hours);
    if (workload.jobs.empty()) {
      return base::fail(base::Errc::NotFound,
                        "{}: no job was submitted in {} hours from hour {} on", workload.name,
                        o.hours, from_h);
    }
  }
  if (o.jobs > 0 && workload.jobs.size() > o.jobs) workload.jobs.resize(o.jobs);
  return compressed(std::move(workload), o.compress);
}

base::Result<std::vector<Workload>> workloads_of(const ScsimOptions& o) {
  std::vector<Workload> out;
  for (const std::string& path : o.swf) {
    auto workload = read_swf(path);
    if (!workload) return workload.error();
    for (const std::string& line : workload->complaints) fmt::print(stderr, "scsim: {}\n", line);
    if (workload->malformed + workload->empty > 0) {
      fmt::print(stderr, "scsim: {}: skipped {} malformed lines and {} jobs that never ran\n",
                 workload->name, workload->malformed, workload->empty);
    }
    out.push_back(std::move(*workload));
  }
  if (o.lublin > 0) out.push_back(lublin(o.nodes > 0 ? o.nodes : 256, o.lublin, o.seed));
  for (Workload& w : out) {
    auto part = part_of(std::move(w), o);
    if (!part) return part.error();
    w = std::move(*part);
    if (o.nodes > 0) w = on_nodes(std::move(w), o.nodes);
    if (!o.no_memory) draw_memory(w, o.seed);
    for (SimJob& job : w.jobs) job.memory = std::min(1.0, job.memory * o.scarce);
    draw_users(w, 32, o.seed);
  }
  return out;
}

base::Result<SimulationRun> timed(const Workload& workload, const SimOptions& options) {
  const auto before = std::chrono::steady_clock::now();
  auto run = simulate(workload, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  if (run) run->wall_s = took.count();
  return run;
}

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) fmt::print(stderr, "scsim: cannot write {}\n", path);
  return bool(file);
}

base::Result<PolicyOptions> policy_with(const ScsimOptions& o, const std::string& name) {
  auto policy = policy_of(name);
  if (!policy) return policy;
  if (o.slots > 0 && policy->slots > 1) policy->slots = o.slots;
  if (o.quantum_ms > 0) policy->quantum = Duration{static_cast<std::int64_t>(o.quantum_ms * 1e6)};
  policy->long_limit = Duration{static_cast<std::int64_t>(o.long_s * 1e9)};
  policy->long_slots = o.long_slots;
  policy->long_weight = o.long_weight;
  policy->long_early = Duration{static_cast<std::int64_t>(o.long_early_s * 1e9)};
  if (policy->placement <= gang::Placement::Dqt) {
    policy->young_time = Duration{static_cast<std::int64_t>(o.young_s * 1e9)};
  }
  policy->long_shared = Duration{static_cast<std::int64_t>(o.long_shared_s * 1e9)};
  return policy;
}

// Submits everything at once. Then jobs end one by one, and each time the scheduler tries the
// queue.
int measure_passes(ScsimOptions& o) {
  constexpr int kPasses = 100;
  auto workloads = workloads_of(o);
  if (!workloads) return refuse(plain_text(workloads.error()));
  const Workload& workload = workloads->front();
  for (const std::string& name : split(o.policies, ',')) {
    const auto policy = policy_with(o, name);
    if (!policy) return refuse(plain_text(policy.error()));
    Machine machine(machine_options(*policy, workload.nodes));
    TimePoint now{std::chrono::hours{1}};
    for (const SimJob& job : workload.jobs) machine.submit(request_of(job, o.sim), now);
    machine.settle(now);
    const std::size_t waiting = machine.waiting();
    std::vector<double> took;
    while (took.size() < kPasses && !machine.active().empty()) {
      now += std::chrono::seconds{1};
      machine.finish(*machine.active().begin(), now);
      const auto before = std::chrono::steady_clock::now();
      machine.settle(now);
      const std::chrono::duration<double, std::milli> passed =
          std::chrono::steady_clock::now() - before;
      took.push_back(passed.count());
    }
    std::sort(took.begin(), took.end());
    if (took.empty()) continue;
    fmt::print(
        "{:<12} {} nodes, {} jobs wait: a pass takes {:.3f} ms (median), {:.3f} ms (worst)\n", name,
        workload.nodes, waiting, took[took.size() / 2], took.back());
  }
  return 0;
}

// Holds the last run, which --timeline and --records describe.
struct LastRun {
  Workload workload;
  SimOptions options;
  SimulationRun run;
};

bool draw_figures(const ScsimOptions& o, const std::vector<PolicyResult>& results) {
  if (o.figures.empty()) return o.plot.empty() || write(o.plot, as_plot(overview(), results));
  const auto figures = *figures_named(o.figures);
  for (const Figure& figure : figures) {
    if (!o.json) fmt::print("{}", as_tables(figure, results));
  }
  if (o.plot.empty()) return true;
  std::error_code error;
  std::filesystem::create_directories(o.plot, error);
  for (const Figure& figure : figures) {
    if (!write(o.plot + "/" + figure.name + ".svg", as_plot(figure, results))) return false;
  }
  return true;
}

int write_results(const ScsimOptions& o, const std::vector<PolicyResult>& results,
                  const LastRun& last) {
  if (o.json || o.figures.empty()) fmt::print("{}", o.json ? as_json(results) : as_table(results));
  if (!draw_figures(o, results)) return base::kExitError;
  if (!o.timeline.empty() && !write(o.timeline, as_timeline(results.back(), last.run))) {
    return base::kExitError;
  }
  const auto records = [&] { return as_records(last.workload, last.options, last.run); };
  return o.records.empty() || write(o.records, records()) ? 0 : base::kExitError;
}

int run_all(ScsimOptions& o) {
  auto workloads = workloads_of(o);
  if (!workloads) return refuse(plain_text(workloads.error()));
  std::vector<PolicyResult> results;
  LastRun last;
  for (const Workload& original : *workloads) {
    const std::vector<double> loads =
        o.loads.empty() ? std::vector{offered_load(original)} : o.loads;
    for (const double load : loads) {
      const Workload workload = at_load(original, load);
      for (const std::string& name : split(o.policies, ',')) {
        auto policy = policy_with(o, name);
        if (!policy) return refuse(plain_text(policy.error()));
        o.sim.policy = *policy;
        o.sim.seed = o.seed;
        auto run = timed(workload, o.sim);
        if (!run) return refuse(plain_text(run.error()));
        results.push_back(result_of(workload, o.sim, load, *run));
        if (!o.json)
          fmt::print(stderr, "{}", as_table({results.back()}).substr(as_table({}).size()));
        last = {workload, o.sim, std::move(*run)};
      }
    }
  }
  return write_results(o, results, last);
}

}  // namespace
}  // namespace score::scsim

int main(int argc, char** argv) {
  score::scsim::ScsimOptions options;
  if (const auto code = score::scsim::read_arguments(argc, argv, options)) return *code;
  return options.pass ? score::scsim::measure_passes(options) : score::scsim::run_all(options);
}
