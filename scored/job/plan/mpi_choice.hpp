#pragma once
// Which process management (PMI-1, PMIx) the tasks of a job are offered under --mpi=auto.

#include "scored/job/plan/plan.hpp"

namespace score::shepherd {

// Settles `auto`: PMIx for a program that is linked to Open MPI or libpmix, both for a script,
// which may start either, else PMI-1, which costs nothing. Several programs: what any of them
// wants. The working directory must be the job's.
void choose_mpi(Plan& plan);

}  // namespace score::shepherd
