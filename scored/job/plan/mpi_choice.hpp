#pragma once
// Which process management (PMI-1, PMIx) the tasks of a job are offered under --mpi=auto, and what
// they can take.

#include "scored/job/plan/plan.hpp"

namespace score::shepherd {

// Settles `auto`: PMIx for a program that is linked to Open MPI or libpmix, both for a script,
// which may start either, else PMI-1, which costs nothing. Several programs: what any of them
// wants. The working directory must be the job's.
void choose_mpi(Plan& plan);

// Whether the job's program is linked to an MPICH whose PMI-1 client takes long values: 5.0 or
// later. The answer must be the same on all nodes, so it is no for scripts and for several
// programs, and for a few ranks, which are not worth a look. The working directory must be the
// job's.
bool takes_long_pmi_values(const Plan& plan);

}  // namespace score::shepherd
