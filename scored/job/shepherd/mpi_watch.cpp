// This module is tested by test_mpi.py and test_mpi_on_pm.py, because it needs real MPI libraries.
#include "scored/job/shepherd/mpi_watch.hpp"

#include "scored/job/plan/pm_choice.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kCheckAgain = 20ms;
// These times count from the start: an MPI library is loaded at once, but a script may first do
// other work.
constexpr std::array<base::Duration, 5> kRounds{100ms, 300ms, 1s, 4s, 15s};

}  // namespace

MpiWatch::MpiWatch(EventLoop& loop, const Plan& plan, const TaskTable& tasks, Note note, End end)
    : loop_(loop), plan_(plan), tasks_(tasks), note_(std::move(note)), end_(std::move(end)) {}

void MpiWatch::tasks_started() {
  // With --mpi=none the user wants ranks that run alone.
  const bool has_all = plan_.wants_pmi() == plan_.wants_pmix();
  if (!is_first_node() || plan_.size == 1 || has_all) return;
  loop_.after(kRounds[0], [this] { check_unserved(0); });
}

void MpiWatch::check_unserved(std::size_t round) {
  if (is_served_ || tasks_.all_ended()) return;
  const auto mpi = mpi_of_task(static_cast<pid_t>(tasks_.pids()[0]));
  const bool is_open_mpi = mpi.kind == MpiLibrary::OpenMpi;
  const bool lacks = is_open_mpi ? !plan_.wants_pmix() : !plan_.wants_pmi();
  if (mpi.kind != MpiLibrary::Unknown && lacks) {
    return end_(
        fmt::format("{} finds no {} server, so each rank would run alone; "
                    "scrun --mpi={} starts one",
                    mpi.path, is_open_mpi ? "PMIx" : "PMI-1", is_open_mpi ? "pmix" : "pmi1"));
  }
  if (round + 1 == kRounds.size()) return;
  loop_.after(kRounds[round + 1] - kRounds[round], [this, round] { check_unserved(round + 1); });
}

void MpiWatch::initialised(std::uint32_t task) {
  is_served_ = true;
  if (!wants_pm() || has_checked_pm_ || task >= plan_.local_tasks()) return;
  const auto pid = tasks_.pids()[task];
  if (pid == 0) {  // the spawner reports its pid later
    loop_.after(kCheckAgain, [this, task] { initialised(task); });
    return;
  }
  has_checked_pm_ = true;
  if (is_linked_to_mpi(plan_)) return;  // pm_variables() checked it before the start
  const auto objection = ofi_objection_of_task(static_cast<pid_t>(pid));
  has_objected_ = !objection.empty();
  if (has_objected_) note_(task, fmt::format("--net=pm is not used: {}", objection));
}

bool MpiWatch::has_several_mpis(std::uint32_t task) const {
  const bool is_known = task < plan_.local_tasks() && tasks_.pids()[task] != 0;
  return is_known && count_mpi_processes(static_cast<pid_t>(tasks_.pids()[task])) > 1;
}

void MpiWatch::tasks_ended(bool has_served) {
  if (!wants_pm() || plan_.spec.quiet() || has_served || has_objected_) return;
  if (tasks_.started_count() == 0) return;  // there was only room on this node
  note_(0, "--net=pm: no task here has opened PM; is the MPI library built on OFI (libfabric)?");
}

}  // namespace score::shepherd
