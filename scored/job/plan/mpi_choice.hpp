#pragma once
// Chooses the process management (PMI-1, PMIx) that is offered to a job's tasks under --mpi=auto,
// and determines which PMI values they accept.

#include "base/result.hpp"
#include "scored/job/plan/plan.hpp"

namespace score::shepherd {

// Resolves `auto`: PMIx for a program that is linked to Open MPI or libpmix; both for a script,
// which may start either; otherwise PMI-1, which costs nothing. With several programs, everything
// that any of them needs is offered. The working directory must be the job's.
void choose_mpi(Plan& plan);

// Checks a choice that the user has made. Errors: Unsupported (a program of this node is linked to
// an Open MPI, which would find no server, so each rank would run alone); the text names the right
// option. Call it before choose_mpi(). The working directory must be the job's.
base::Status check_mpi(const Plan& plan);

// Returns true if the job's program is linked to an MPICH whose PMI-1 client accepts long values,
// which is 5.0 or later. The answer must be the same on all nodes, so it is false for scripts and
// for several programs. It is also false for few ranks, where the check does not pay. The working
// directory must be the job's.
bool takes_long_pmi_values(const Plan& plan);

}  // namespace score::shepherd
