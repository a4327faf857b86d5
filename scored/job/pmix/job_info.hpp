#pragma once
// Collects the information about a job that a PMIx server gives its clients: which rank runs on
// which node, in PMIx's terms (PMIx standard 4.1, chapter 6: reserved keys of a job).

#include "scored/job/plan/plan.hpp"
#include "scored/job/pmix/info_list.hpp"

#include <string>

namespace score::pmix {

// Adds the data for PMIx_server_register_nspace. `directory` belongs to this job on this node; its
// owner removes it. Errors: Malformed (a node's name that PMIx cannot represent).
base::Status add_job_info(InfoList& out, const shepherd::Plan& plan, const std::string& directory);

}  // namespace score::pmix
