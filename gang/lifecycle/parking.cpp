// This file is tested by parking_test.cpp.
#include "gang/lifecycle/parking.hpp"

#include "base/text/plain.hpp"
#include "gang/lifecycle/may_park.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace score::gang {

using base::Bytes;
using base::Errc;
using base::fail;

// ---- one job ----------------------------------------------------------------------------------

void Parking::send(const Job& job, std::size_t member, bool out, Step& step) const {
  tables_.nodes.send(job.cells.nodes[member], base::ParkTasks{job.attempt(), out}, step);
}

void Parking::send_all(const Job& job, bool out, Step& step) const {
  for (const std::size_t member : job.members->in(Member::Started)) send(job, member, out, step);
}

void Parking::leave(Job& job, JobId for_job, Step& step) {
  Parked& parked = job.parked.edit();
  parked.residence = Residence::Leaving;
  parked.for_job = for_job;
  parked.left = step.now;
  parked.expect_answers(job.cells.nodes.size());
  job.forget_activity();
  tables_.jobs.mark_changed();
  send_all(job, true, step);
  step.job_changed(job.id);
}

// Memory that is read ahead stays in swap until then, so nothing is reserved for it. Each node
// reads no more than is free there and what leaves.
void Parking::read_ahead(const Job& job, const Job& leaving, Step& step) const {
  if (job.parked->residence != Residence::Parked) return;
  for (const std::size_t member : job.members->in(Member::Started)) {
    const NodeIndex node = job.cells.nodes[member];
    if (!leaving.member_on(node)) continue;
    const Reservations& here = placer_.on_node(node);
    const Bytes room = tables_.nodes[node].info.memory + here.lent - here.memory;
    tables_.nodes.send(node, base::ParkTasks{job.attempt(), true, leaving.attempt(), room}, step);
  }
}

void Parking::come_back(Job& job, Step& step) {
  placer_.take_back(job);
  Parked& parked = job.parked.edit();
  parked.residence = Residence::Returning;
  parked.for_job = JobId{0};
  parked.short_node.clear();
  for (Parked::Part& part : parked.parts) part.has_answered = false;
  send_all(job, false, step);
  step.job_changed(job.id);
}

// ---- reports ----------------------------------------------------------------------------------

void Parking::take_out(Job& job, std::size_t member, const base::ParkReport& report) {
  Parked& parked = job.parked.edit();
  Parked::Part& part = parked.parts[member];
  if (!report.reason.empty()) {
    const std::string& node = tables_.nodes.name(job.cells.nodes[member]);
    parked.refused = fmt::format("{}: {}", node, report.reason);
    return;
  }
  if (part.is_out) return;
  part.is_out = true;
  part.in_swap = part.usual = report.moved;
  part.stays = report.stays;
  parked.moved_out += report.moved;
  const bool is_open =
      job.state == JobState::Suspended && tables_.config.memory_share == base::MemoryShare::Always;
  placer_.lend(job, member, report.stays, is_open);
}

void Parking::reported(Job& job, std::size_t member, const base::ParkReport& report, Step& step) {
  if (job.overlay() || !job.is_managed()) return;
  if (report.out && !job.parked->is_away() && report.reason.empty()) {
    Parked& parked = job.parked.edit();
    parked.residence = Residence::Leaving;
    parked.left = step.now;
    parked.expect_answers(job.cells.nodes.size());
    tables_.jobs.mark_changed();
    send_all(job, true, step);
  }
  Parked& parked = job.parked.edit();
  if (member >= parked.parts.size() || !parked.is_away()) return;
  if (report.out == (parked.residence == Residence::Returning)) return;
  Parked::Part& part = parked.parts[member];
  if (part.has_answered) return;
  turns_.measured(job.cells.nodes[member], report);
  if (report.out) {
    take_out(job, member, report);
  } else {
    parked.moved_in += report.moved;
    part.is_out = false;
    part.in_swap = Bytes{0};
  }
  part.has_answered = true;
  part.took = report.took;
  answered(job, step);
  step.job_changed(job.id);
}

void Parking::answered(Job& job, Step& step) {
  Parked& parked = job.parked.edit();
  const auto has_all = [&](auto&& test) {
    return std::ranges::all_of(job.members->in(Member::Started),
                               [&](std::size_t member) { return test(parked.parts[member]); });
  };
  if (!has_all([](const Parked::Part& part) { return part.has_answered; })) return;
  base::Duration longest{0};
  for (Parked::Part& part : parked.parts) longest = std::max(longest, std::exchange(part.took, {}));
  parked.took += longest;
  if (parked.residence == Residence::Leaving) {
    parked.residence = Residence::Parked;
    const bool is_any_out = !has_all([](const Parked::Part& part) { return !part.is_out; });
    if (is_any_out) return;
  }
  if (parked.residence == Residence::Parked && parked.refused.empty()) return;
  placer_.take_back(job);
  parked.end_absence(step.now);
  parked.for_job = JobId{0};
  parked.short_node.clear();
  parked.began = step.now;
  turns_.exchanged(job, step.now);
  tables_.jobs.mark_changed();
  step.job_changed(job.id);
}

void Parking::connected(NodeIndex node, Step& step) {
  if (tables_.nodes[node].info.swap == Bytes{0}) return;
  for (const JobId id : placer_.on_node(node).jobs) {
    const Job& job = tables_.jobs.at(id);
    const auto member = job.member_on(node);
    if (!job.parked->is_away() || !member || !job.members->has_tasks(*member)) continue;
    send(job, *member, job.parked->residence != Residence::Returning, step);
  }
}

// ---- suspended jobs ---------------------------------------------------------------------------

base::Result<void> Parking::check_resume(const Job& job) const {
  if (!job.parked->is_away() || placer_.may_take_back(job)) return {};
  return fail(Errc::TooLarge,
              "job {} is parked, and other jobs have its memory ({} per node): resume it when they "
              "have ended",
              job.id, base::human_bytes(job.shape.memory));
}

void Parking::resumed(Job& job, Step& step) {
  if (job.parked->is_away() && job.parked->residence != Residence::Returning) come_back(job, step);
}

// ---- jobs of queue urgent ---------------------------------------------------------------------

std::vector<JobId> Parking::victims_on(const Job& urgent, NodeIndex node) const {
  std::vector<const Job*> there;
  for (const JobId id : placer_.on_node(node).jobs) {
    const Job& job = tables_.jobs.at(id);
    const bool is_there = job.state == JobState::Running && !job.parked->is_away();
    if (!is_there || job.is_high() || job.is_exclusive() || job.shape.memory == Bytes{0}) continue;
    if (why_not_parked(tables_, job).empty()) there.push_back(&job);
  }
  std::ranges::sort(there, [](const Job* a, const Job* b) { return a->started > b->started; });
  Bytes free = placer_.free_memory(urgent, node);
  std::vector<JobId> out;
  for (const Job* job : there) {
    if (free >= urgent.shape.memory) break;
    free += job->shape.memory;
    out.push_back(job->id);
  }
  if (free < urgent.shape.memory) out.assign(1, JobId{0});
  return out;
}

// Returns the jobs to park so that the job finds memory; empty if there is no way.
std::set<JobId> Parking::victims_for(const Job& urgent) const {
  std::vector<Candidate> places;
  std::vector<std::vector<JobId>> victims(tables_.nodes.size());
  for (NodeIndex node = 0; node < tables_.nodes.size(); ++node) {
    const std::uint32_t tasks = tasks_on_cores(urgent.shape, placer_.matrix().cores(node));
    if (tasks == 0 || !placer_.may_use(urgent, node)) continue;
    if (placer_.on_node(node).exclusive) continue;
    victims[node] = victims_on(urgent, node);
    if (victims[node] == std::vector{JobId{0}}) continue;
    places.push_back({node, tasks, static_cast<std::uint32_t>(victims[node].size())});
  }
  std::set<JobId> out;
  const auto choice = choose(at_least(urgent.shape), places);
  if (!choice) return out;
  for (const NodeIndex node : choice->nodes) {
    out.insert(victims[node].begin(), victims[node].end());
  }
  return out;
}

// While jobs leave for the waiting one nothing else is tried. If they have left and it still finds
// no place, more are parked; if none can be, they all return.
void Parking::serve(const Job& urgent, Step& step) {
  if (hopeless_.contains(urgent.id) || !placer_.is_open(urgent) || placer_.find_spot(urgent))
    return;
  bool has_parked = false;
  for (const JobId id : tables_.jobs.managed()) {
    const Parked& parked = *tables_.jobs.at(id).parked;
    if (!parked.is_away() || parked.for_job != urgent.id) continue;
    if (parked.residence == Residence::Leaving) return;
    has_parked = true;
  }
  const std::set<JobId> victims = victims_for(urgent);
  if (victims.empty() && has_parked) hopeless_.insert(urgent.id);
  for (const JobId id : victims) leave(tables_.jobs.at(id), urgent.id, step);
}

bool Parking::is_awaited(JobId urgent) const {
  const Job* job = urgent == JobId{0} ? nullptr : tables_.jobs.find(urgent);
  return job != nullptr && job->is_urgent() && job->state == JobState::Pending &&
         placer_.is_in_line(*job) && !hopeless_.contains(urgent);
}

void Parking::return_unneeded(Step& step) {
  for (const JobId id : tables_.jobs.active()) {
    Job& job = tables_.jobs.at(id);
    if (job.parked->residence != Residence::Parked || is_awaited(job.parked->for_job)) continue;
    if (!job.parked->short_node.empty()) continue;
    if (placer_.may_take_back(job)) come_back(job, step);
  }
}

// ---- nodes that are short of memory -----------------------------------------------------------

// Returns the youngest job of the node that may be parked; none if a job is on its way, or no other
// one would be left.
std::optional<JobId> Parking::find_relief(NodeIndex node) const {
  const Job* youngest = nullptr;
  std::size_t there = 0;
  for (const JobId id : placer_.on_node(node).jobs) {
    const Job& job = tables_.jobs.at(id);
    const Residence residence = job.parked->residence;
    if (residence == Residence::Leaving || residence == Residence::Returning) return std::nullopt;
    if (job.state != JobState::Running || job.parked->is_away()) continue;
    ++there;
    if (job.is_high() || job.is_exclusive() || !why_not_parked(tables_, job).empty()) continue;
    if (youngest == nullptr || job.started > youngest->started) youngest = &job;
  }
  return youngest != nullptr && there > 1 ? std::optional(youngest->id) : std::nullopt;
}

void Parking::memory_reported(NodeIndex node, const base::MemoryReport& report, Step& step) {
  memory_[node] = report;
  if (!report.is_short || tables_.config.memory_share == base::MemoryShare::Never) return;
  const auto id = find_relief(node);
  if (!id) return;
  Job& job = tables_.jobs.at(*id);
  leave(job, JobId{0}, step);
  job.parked.edit().short_node = tables_.nodes.name(node);
}

// A job returns when its nodes can spare the memory that it has in swap. A job that is alone on its
// nodes returns in any case: nothing else would make room for it.
bool Parking::has_room_again(const Job& job) const {
  for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
    const NodeIndex node = job.cells.nodes[m];
    const auto report = memory_.find(node);
    const Bytes needed = m < job.parked->parts.size() ? job.parked->parts[m].in_swap : Bytes{0};
    if (report == memory_.end()) continue;
    if (!report->second.is_short && report->second.spare >= needed) continue;
    const bool is_alone = std::ranges::none_of(placer_.on_node(node).jobs, [&](JobId id) {
      const Job& other = tables_.jobs.at(id);
      return id != job.id && other.state == JobState::Running && !other.parked->is_away();
    });
    if (!is_alone) return false;
  }
  return true;
}

void Parking::return_relieved(Step& step) {
  for (const JobId id : tables_.jobs.active()) {
    Job& job = tables_.jobs.at(id);
    const bool is_relief = job.parked->residence == Residence::Parked &&
                           !job.parked->short_node.empty() && job.state == JobState::Running;
    if (is_relief && has_room_again(job) && placer_.may_take_back(job)) come_back(job, step);
  }
}

// ---- turns ------------------------------------------------------------------------------------

// To plan costs a search of the matrix for each waiting job that is examined.
bool Parking::must_plan(TimePoint now) {
  const auto& queue = placer_.waiting();
  const std::pair<std::size_t, std::uint64_t> now_there{
      queue.size(), queue.empty() ? 0 : queue.rbegin()->first.number};
  const bool is_due = turns_.next_time() && *turns_.next_time() <= now;
  const bool has_changed = std::exchange(planned_, now_there) != now_there;
  return has_changed || is_due || placer_.has_grown() || tables_.jobs.is_changed();
}

// While memory is being freed for a job of queue urgent, no other job is given any.
void Parking::take_turns(Step& step) {
  if (!must_plan(step.now)) return;
  std::vector<JobId> parked;
  for (const JobId id : tables_.jobs.active()) {
    const Parked& job = *tables_.jobs.at(id).parked;
    if (!job.is_away()) continue;
    if (is_awaited(job.for_job)) return turns_.clear();
    const bool waits = job.residence == Residence::Parked && job.short_node.empty();
    if (waits) parked.push_back(id);
  }
  const MemoryPlan plan = turns_.plan(parked, step.now);
  for (const JobId id : plan.back) come_back(tables_.jobs.at(id), step);
  for (const auto& [id, for_job] : plan.out) {
    Job& job = tables_.jobs.at(id);
    turns_.exchanged(job, step.now);
    leave(job, for_job, step);
    read_ahead(tables_.jobs.at(for_job), job, step);
  }
}

void Parking::settle(Step& step) {
  std::erase_if(hopeless_, [&](JobId id) {
    const Job* job = tables_.jobs.find(id);
    return job == nullptr || job->state != JobState::Pending;
  });
  if (tables_.nodes.is_awaiting()) return turns_.clear();
  if (tables_.config.memory_share != base::MemoryShare::Never) {
    for (const auto& [key, job] : placer_.waiting()) {
      if (!job->is_urgent()) break;  // they are first in line
      if (job->shape.memory > Bytes{0}) serve(*job, step);
    }
    for (const JobId id : tables_.jobs.managed()) {
      Job& job = tables_.jobs.at(id);
      const bool may_leave = job.state == JobState::Suspended && !job.parked->is_away();
      if (may_leave && why_not_parked(tables_, job).empty()) leave(job, JobId{0}, step);
    }
  }
  return_relieved(step);
  if (tables_.config.memory_share == base::MemoryShare::Always) {
    take_turns(step);
  } else {
    return_unneeded(step);
  }
}

// ---- display ----------------------------------------------------------------------------------

std::string turn_reason(const Job& job, TimePoint now) {
  const Parked& parked = *job.parked;
  if (parked.awaits.empty()) return {};
  constexpr std::size_t kShown = 4;
  std::string jobs;
  for (std::size_t i = 0; i < std::min(kShown, parked.awaits.size()); ++i) {
    jobs += fmt::format("{}{}", i == 0 ? "" : ", ", parked.awaits[i]);
  }
  if (parked.awaits.size() > kShown) jobs += " and others";
  const std::string_view kind = parked.awaits.size() == 1 ? "job" : "jobs";
  if (parked.due <= now) return fmt::format("memory: {} {} are leaving for it", kind, jobs);
  const auto left = std::chrono::ceil<std::chrono::seconds>(parked.due - now);
  return fmt::format("memory: its turn comes in {}, when {} {} leave", base::format_duration(left),
                     kind, jobs);
}

std::string parked_reason(const Job& job, TimePoint now) {
  const Parked& parked = *job.parked;
  std::string why = parked.for_job == JobId{0} ? "" : fmt::format(" for job {}", parked.for_job);
  if (!parked.short_node.empty()) {
    why = fmt::format(" because {} is short of memory", parked.short_node);
  }
  switch (parked.residence) {
    case Residence::InMemory:
      return parked.refused.empty() ? "" : "cannot be parked: " + parked.refused;
    case Residence::Leaving:
      return "its memory is being written to swap" + why;
    case Residence::Parked:
      why = fmt::format("parked{}: {} of its memory are in swap", why,
                        base::human_bytes(parked.in_swap()));
      if (const std::string turn = turn_reason(job, now); !turn.empty()) why += "; " + turn;
      return why;
    case Residence::Returning:
      return "its memory is being read back from swap";
  }
  return {};
}

}  // namespace score::gang
