#pragma once
// What a PMIx server gives its clients about their job: which rank runs where, in PMIx's terms
// (PMIx standard 4.1, chapter 6: reserved keys of a job).

#include "scored/job/plan/plan.hpp"
#include "scored/job/pmix/info_list.hpp"

#include <string>

namespace score::pmix {

// For PMIx_server_register_nspace. `directory`: of this job on this node, removed by its owner.
// Errors: Malformed (a node's name that PMIx cannot carry).
base::Status add_job_info(InfoList& out, const shepherd::Plan& plan, const std::string& directory);

}  // namespace score::pmix
