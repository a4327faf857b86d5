// The simulation goes from event to event: a submission, the end of a job, a change between busy
// and idle. Nothing happens at boundaries of slices. It looks for the end of a job at the earliest
// time at which that can come (Machine::look_again), and after each change of turns.
//
// Fill: a job without its turn progresses at the rate `fill` (docs/lab/fill.md), so with a share s
// of the time it advances by s + fill (1 - s).
//
// This file is tested by simulate_test.cpp.
#include "bench/scsim/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace score::scsim {

using namespace std::chrono_literals;

namespace {

constexpr TimePoint kNever = TimePoint::max();

TimePoint time_of(double seconds) {
  return TimePoint{1h} + Duration{static_cast<std::int64_t>(seconds * 1e9)};
}

Duration duration_of(double seconds) {
  return Duration{static_cast<std::int64_t>(seconds * 1e9)};
}

double seconds_of(Duration d) {
  return static_cast<double>(d.count()) / 1e9;
}

double seconds_of(TimePoint t) {
  return seconds_of(t - TimePoint{1h});
}

struct Active {
  const SimJob* job = nullptr;
  TimePoint start{};
  Duration work{};   // total
  Duration done{};   // by `synced`
  Duration clock{};  // its scheduled time at `synced`
  double rate = 1;   // progress per scheduled time
  TimePoint look{};  // when it may have ended, or change its phase
  TimePoint phase_end = kNever;
  bool idle = false;
  bool is_near = false;   // on one leaf switch
  bool starting = false;  // it holds its nodes, but is not in the timetable
};

class Simulation {
 public:
  Simulation(const Workload& workload, const SimOptions& options)
      : workload_(workload),
        options_(options),
        machine_(machine_of(options, workload.nodes)),
        random_(options.seed) {
    machine_.set_start_takes_time(options.start_cost_s > 0);
  }

  base::Result<SimulationRun> run() {
    const auto& jobs = workload_.jobs;
    run_.last_submit_s = jobs.empty() ? 0 : jobs.back().submit_s;
    while (next_ < jobs.size() || !active_.empty()) {
      const TimePoint submission = next_ < jobs.size() ? time_of(jobs[next_].submit_s) : kNever;
      now_ = std::min({submission, earliest(), next_paging()});
      if (now_ == kNever) return base::fail(base::Errc::WrongState, "no job can proceed");
      if (next_paging() <= now_) {
        machine_.page(now_);
        changed_ = true;
      }
      if (now_ == submission) submit(jobs[next_++]);
      for (const JobId id : due()) look(id);
      if (changed_) settle();
      if (!options_.check) continue;
      if (auto sound = machine_.check(); !sound) return sound.error();
    }
    run_.switches = machine_.switches(now_);
    run_.layouts = machine_.layouts();
    run_.pagings = machine_.pagings();
    run_.memory_high = double(machine_.memory_high().value()) / double(kNodeMemory.value());
    return std::move(run_);
  }

 private:
  static MachineOptions machine_of(const SimOptions& options, std::uint32_t nodes) {
    MachineOptions machine = machine_options(options.policy, nodes);
    machine.memory = options.memory;
    machine.switch_nodes = options.ignores_switches ? 0 : options.switch_nodes;
    return machine;
  }

  [[nodiscard]] bool is_near(const std::vector<gang::NodeIndex>& nodes) const {
    const std::uint32_t on_leaf = options_.switch_nodes;
    return on_leaf > 0 && nodes.front() / on_leaf == nodes.back() / on_leaf;
  }

  // A time that has passed is that of a turn whose end was dealt with at an earlier event.
  [[nodiscard]] TimePoint next_paging() const {
    return std::max(machine_.next_paging().value_or(kNever), now_);
  }

  [[nodiscard]] TimePoint earliest() const {
    TimePoint first = kNever;
    for (const auto& [id, a] : active_) first = std::min(first, a.look);
    return first;
  }

  [[nodiscard]] std::vector<JobId> due() const {
    std::vector<JobId> out;
    for (const auto& [id, a] : active_) {
      if (a.look <= now_) out.push_back(id);
    }
    return out;
  }

  void submit(const SimJob& job) {
    const JobId id{job.number};
    waiting_[id] = &job;
    const MachineJob request = request_of(job, options_);
    if (machine_.has_memory(request)) fits_.insert(id);
    machine_.submit(request, now_);
    changed_ = true;
  }

  void begin(JobId id) {
    Active a;
    a.job = waiting_.at(id);
    waiting_.erase(id);
    a.start = now_;
    a.work = duration_of(a.job->run_s + options_.run_cost_s);
    a.is_near = is_near(machine_.job(id).cells.nodes);
    a.starting = options_.start_cost_s > 0;
    a.look = now_ + duration_of(options_.start_cost_s);
    if (options_.idle_jobs > 0 && chance() < options_.idle_jobs) {
      a.phase_end = now_ + duration_of(options_.start_cost_s) + phase(options_.busy_s);
    }
    active_[id] = a;
  }

  double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  Duration phase(double mean_s) {
    return duration_of(std::exponential_distribution<double>(1 / mean_s)(random_));
  }

  // Moves `done` forward to now. Idle time passes by itself: it is work that needs no processor.
  void sync(JobId id, Active& a) {
    if (a.idle || a.starting) return;
    const Duration clock = machine_.scheduled(id, now_);
    const double gained = static_cast<double>((clock - a.clock).count()) * a.rate;
    a.done += Duration{static_cast<std::int64_t>(gained)};
    a.clock = clock;
  }

  void look(JobId id) {
    Active& a = active_.at(id);
    if (a.starting) return enter_timetable(id, a);
    sync(id, a);
    if (machine_.job(id).is_young && a.clock >= options_.policy.young_time) {
      machine_.age(id);
      changed_ = true;
    }
    if (a.done + 1us >= a.work && !a.idle) return finish(id, a);
    if (a.phase_end <= now_) return change_phase(id, a);
    look_later(id, a);
  }

  void enter_timetable(JobId id, Active& a) {
    machine_.prepared(id, now_);
    a.starting = false;
    a.start = now_;
    changed_ = true;
  }

  void look_later(JobId id, Active& a) {
    if (a.starting) return;
    a.look = a.phase_end;
    if (a.idle) return;
    if (machine_.job(id).is_young) {
      const Duration young = std::max(options_.policy.young_time - a.clock, Duration{1});
      if (const auto t = machine_.look_again(id, young, now_)) {
        a.look = std::min(a.look, std::max(*t, now_ + Duration{1}));
      }
    }
    const double missing = static_cast<double>((a.work - a.done).count()) / a.rate;
    const auto need = Duration{static_cast<std::int64_t>(std::ceil(missing))};
    if (const auto t = machine_.look_again(id, std::max(need, Duration{1}), now_)) {
      a.look = std::min(a.look, std::max(*t, now_ + Duration{1}));
    }
  }

  void change_phase(JobId id, Active& a) {
    a.idle = !a.idle;
    if (a.idle) {
      const Duration length = std::min(phase(options_.idle_s), a.work - a.done);
      a.done += length;  // it passes by itself
      a.phase_end = now_ + length;
    } else {
      a.phase_end = now_ + phase(options_.busy_s);
      a.clock = machine_.scheduled(id, now_);
    }
    machine_.set_idle(id, a.idle, now_);
    changed_ = true;
    look_later(id, a);
  }

  void finish(JobId id, const Active& a) {
    machine_.finish(id, now_);
    const PolicyOptions& policy = options_.policy;
    const bool is_in_order =
        policy.long_limit > Duration::zero() &&
        request_of(*a.job, options_).limit > std::max(policy.long_limit, policy.long_early);
    run_.job_results.push_back({*a.job, seconds_of(a.start), seconds_of(now_), fits_.contains(id),
                                a.is_near, is_in_order});
    active_.erase(id);
    changed_ = true;
  }

  void settle() {
    changed_ = false;
    if (options_.fill > 0) {
      for (auto& [id, a] : active_) sync(id, a);
    }
    for (const JobId id : machine_.settle(now_)) begin(id);
    run_.most_waiting = std::max(run_.most_waiting, machine_.waiting());
    run_.most_rows = std::max(run_.most_rows, machine_.rows());
    for (auto& [id, a] : active_) {
      if (options_.fill > 0) {
        const double share = machine_.share(id);
        a.rate = share > 0 ? (share + options_.fill * (1 - share)) / share : 1;
      } else {
        sync(id, a);
      }
      look_later(id, a);
    }
  }

  const Workload& workload_;
  const SimOptions& options_;
  Machine machine_;
  std::mt19937_64 random_;
  std::size_t next_ = 0;
  TimePoint now_{};
  bool changed_ = false;
  std::map<JobId, const SimJob*> waiting_;
  std::map<JobId, Active> active_;
  std::set<JobId> fits_;
  SimulationRun run_;
};

}  // namespace

base::Result<PolicyOptions> policy_of(const std::string& name) {
  using gang::Placement;
  constexpr std::uint32_t kSlots = base::limits::kDefaultSlots;
  constexpr Duration kQuantum = base::limits::kDefaultQuantum;
  for (const PolicyOptions& policy : {
           PolicyOptions{"matrix", Placement::Matrix, base::limits::kMaxSlots, kQuantum, 5min},
           PolicyOptions{"dqt", Placement::Dqt, kSlots, kQuantum},
           PolicyOptions{"slurm", Placement::Slurm, kSlots, 5s},
           PolicyOptions{"fcfs", Placement::Fcfs, 1, kQuantum},
           PolicyOptions{"easy", Placement::Easy, 1, kQuantum},
           PolicyOptions{"conservative", Placement::Conservative, 1, kQuantum},
       }) {
    if (policy.name == name) return policy;
  }
  return base::fail(base::Errc::NotFound,
                    "unknown policy {}; known: matrix, dqt, slurm, fcfs, easy, conservative", name);
}

MachineOptions machine_options(const PolicyOptions& p, std::uint32_t nodes) {
  return {p.placement,   nodes,        p.slots,       p.quantum,    p.long_limit,
          p.long_shared, p.long_slots, p.long_weight, p.long_early, p.young_time};
}

MachineJob request_of(const SimJob& job, const SimOptions& options) {
  const auto memory = static_cast<std::uint64_t>(job.memory * double(kNodeMemory.value()));
  const Duration limit = duration_of(std::max(1.0, job.run_s * options.estimate_factor));
  return {JobId{job.number}, job.user, job.nodes, base::Bytes{memory}, limit};
}

base::Result<SimulationRun> simulate(const Workload& workload, const SimOptions& options) {
  return Simulation(workload, options).run();
}

}  // namespace score::scsim
