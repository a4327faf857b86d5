// PMIx costs one server process per node. A program that uses PMIx has a server from the start; a
// script gets one when a task first connects (see MpiServers::offer_pmix).
#include "scored/job/plan/mpi_choice.hpp"

#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/elf_needs.hpp"
#include "scored/job/plan/pm_choice.hpp"

#include <algorithm>

namespace score::shepherd {

namespace {

constexpr std::uint32_t kWorthALook = 32;  // ranks; the data they read grows with their square;
                                           // measured
// MPICH has this function since 5.0. The client of 4.0 reads lines of 1024 bytes.
constexpr const char* kSinceMpich5 = "MPI_Abi_get_version";

struct PmiSupport {
  bool pmi1 = false;
  bool pmix = false;
};

PmiSupport pmi_support_of(const wire::LaunchSpec& spec, const wire::Program& program) {
  const auto path = executable_of(spec, program);
  if (!path) return {};  // it may be on a different node
  const auto needed = needed_libraries(*path);
  const auto library = needed ? mpi_library_of(*needed) : MpiLibrary::Unknown;
  if (library == MpiLibrary::OpenMpi) return {.pmix = true};
  const bool may_start_mpi = library == MpiLibrary::Unknown && starts_other_programs(*path);
  return {.pmi1 = true, .pmix = may_start_mpi};
}

}  // namespace

void choose_mpi(Plan& plan) {
  if (plan.spec.mpi() != wire::LaunchSpec::AUTO) return;
  PmiSupport all;
  for (const auto& program : plan.spec.programs()) {
    const PmiSupport support = pmi_support_of(plan.spec, program);
    all.pmi1 = all.pmi1 || support.pmi1;
    all.pmix = all.pmix || support.pmix;
  }
  plan.spec.set_mpi(!all.pmix  ? wire::LaunchSpec::PMI1
                    : all.pmi1 ? wire::LaunchSpec::BOTH
                               : wire::LaunchSpec::PMIX);
}

bool takes_long_pmi_values(const Plan& plan) {
  if (plan.size < kWorthALook || plan.spec.programs_size() != 1) return false;
  const auto path = executable_of(plan.spec, plan.spec.programs(0));
  const auto needed = path ? needed_libraries(*path) : path.error();
  if (!needed || mpi_library_of(*needed) != MpiLibrary::Mpich) return false;
  const auto libraries = libraries_of(*path, plan);
  return std::ranges::any_of(libraries, [](const std::string& library) {
    const auto name = library.substr(library.rfind('/') + 1);
    return mpi_library_of({name}) == MpiLibrary::Mpich && has_dynamic_name(library, kSinceMpich5);
  });
}

}  // namespace score::shepherd
