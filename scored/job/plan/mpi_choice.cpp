// PMIx costs one server process per node. A program that uses PMIx has a server from the start; a
// script gets one when a task first connects (see MpiServers::offer_pmix).
#include "scored/job/plan/mpi_choice.hpp"

#include "base/errc.hpp"
#include "base/text.hpp"
#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/elf_needs.hpp"
#include "scored/job/plan/pm_choice.hpp"

#include <algorithm>

namespace score::shepherd {

namespace {

constexpr std::size_t kMostPath = 256;     // bytes of a path in a message
constexpr std::uint32_t kWorthALook = 32;  // ranks; the data they read grows with their square;
                                           // measured
// MPICH has this function since 5.0. The client of 4.0 reads lines of 1024 bytes.
constexpr const char* kSinceMpich5 = "MPI_Abi_get_version";

struct PmiSupport {
  bool pmi1 = false;
  bool pmix = false;
};

PmiSupport pmi_support_of(const Plan& plan, const wire::Program& program) {
  const auto path = executable_of(plan.spec, program);
  if (!path) return {};  // it may be on a different node
  const auto library = linked_mpi_of(*path, plan);
  if (library == MpiLibrary::OpenMpi) return {.pmix = true};
  const bool may_start_mpi = library == MpiLibrary::Unknown && starts_other_programs(*path);
  return {.pmi1 = true, .pmix = may_start_mpi};
}

}  // namespace

void choose_mpi(Plan& plan) {
  if (plan.spec.mpi() != wire::LaunchSpec::AUTO) return;
  PmiSupport all;
  for (const auto& program : plan.spec.programs()) {
    const PmiSupport support = pmi_support_of(plan, program);
    all.pmi1 = all.pmi1 || support.pmi1;
    all.pmix = all.pmix || support.pmix;
  }
  plan.spec.set_mpi(!all.pmix  ? wire::LaunchSpec::PMI1
                    : all.pmi1 ? wire::LaunchSpec::BOTH
                               : wire::LaunchSpec::PMIX);
}

base::Status check_mpi(const Plan& plan) {
  if (plan.size == 1 || plan.spec.mpi() != wire::LaunchSpec::PMI1) return {};
  for (const std::uint32_t app : local_apps(plan)) {
    const auto path = executable_of(plan.spec, plan.spec.programs(static_cast<int>(app)));
    if (!path || linked_mpi_of(*path, plan) != MpiLibrary::OpenMpi) continue;
    return base::fail(
        base::Errc::Unsupported,
        "--mpi=pmi1: {} uses Open MPI, whose ranks find each other by PMIx: each would "
        "run alone; use --mpi=pmix or --mpi=auto",
        base::quote_value(*path, kMostPath));
  }
  return {};
}

bool takes_long_pmi_values(const Plan& plan) {
  if (plan.size < kWorthALook || plan.spec.programs_size() != 1) return false;
  const auto path = executable_of(plan.spec, plan.spec.programs(0));
  if (!path || linked_mpi_of(*path, plan) != MpiLibrary::Mpich) return false;
  const auto libraries = libraries_of(*path, plan);
  return std::ranges::any_of(libraries, [](const std::string& library) {
    const auto name = library.substr(library.rfind('/') + 1);
    return mpi_library_of({name}) == MpiLibrary::Mpich && has_dynamic_name(library, kSinceMpich5);
  });
}

}  // namespace score::shepherd
