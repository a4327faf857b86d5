// PMIx costs a server process per node. A program that uses it has one from the start; a script,
// from when it connects (see MpiServers::offer_pmix).
#include "scored/job/plan/mpi_choice.hpp"

#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/elf_needs.hpp"

namespace score::shepherd {

namespace {

struct Offer {
  bool pmi1 = false;
  bool pmix = false;
};

Offer offer_for(const wire::LaunchSpec& spec, const wire::Program& program) {
  const auto path = executable_of(spec, program);
  if (!path) return {};  // on another node, perhaps
  const auto needed = needed_libraries(*path);
  const auto library = needed ? mpi_library_of(*needed) : MpiLibrary::Unknown;
  if (library == MpiLibrary::OpenMpi) return {.pmix = true};
  const bool may_start_mpi = library == MpiLibrary::Unknown && starts_other_programs(*path);
  return {.pmi1 = true, .pmix = may_start_mpi};
}

}  // namespace

void choose_mpi(Plan& plan) {
  if (plan.spec.mpi() != wire::LaunchSpec::AUTO) return;
  Offer all;
  for (const auto& program : plan.spec.programs()) {
    const Offer offer = offer_for(plan.spec, program);
    all.pmi1 = all.pmi1 || offer.pmi1;
    all.pmix = all.pmix || offer.pmix;
  }
  plan.spec.set_mpi(!all.pmix  ? wire::LaunchSpec::PMI1
                    : all.pmi1 ? wire::LaunchSpec::BOTH
                               : wire::LaunchSpec::PMIX);
}

}  // namespace score::shepherd
