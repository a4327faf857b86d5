// Tested by plan_test.cpp. PMIx costs a server process per node, so it is offered only to programs
// that use it.
#include "scored/job/plan/mpi_choice.hpp"

#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/elf_needs.hpp"

namespace score::shepherd {

void choose_mpi(Plan& plan) {
  if (plan.spec.mpi() != wire::LaunchSpec::AUTO) return;
  const auto path = executable_of(plan.spec);
  const auto needed = path ? needed_libraries(*path) : path.error();
  const bool is_open_mpi = needed && mpi_library_of(*needed) == MpiLibrary::OpenMpi;
  plan.spec.set_mpi(is_open_mpi ? wire::LaunchSpec::PMIX : wire::LaunchSpec::PMI1);
}

}  // namespace score::shepherd
