// These are the commands of the multi-call binary. Each parses its arguments, does its work, and
// returns the exit code.
#pragma once

#include "scout/session/command.hpp"

namespace score::scout {

int scalloc_main(const Invocation& invocation);
int scbatch_main(const Invocation& invocation);
int scrun_main(const Invocation& invocation);
int scout_main(const Invocation& invocation);
int scq_main(const Invocation& invocation);
int sccancel_main(const Invocation& invocation);
int scnodes_main(const Invocation& invocation);
int scshare_main(const Invocation& invocation);
int scattach_main(const Invocation& invocation);
int scadm_main(const Invocation& invocation);
int job_main(const Invocation& invocation);
int change_main(const Invocation& invocation);
int requeue_main(const Invocation& invocation);
int hold_main(const Invocation& invocation);
int release_main(const Invocation& invocation);
int suspend_main(const Invocation& invocation);
int resume_main(const Invocation& invocation);
int weight_main(const Invocation& invocation);
int priority_main(const Invocation& invocation);
int token_main(const Invocation& invocation);
int top_main(const Invocation& invocation);
int hosts_main(const Invocation& invocation);
int info_main(const Invocation& invocation);
int partitions_main(const Invocation& invocation);
int licenses_main(const Invocation& invocation);
int virtual_main(const Invocation& invocation);
int start_main(const Invocation& invocation);
int stop_main(const Invocation& invocation);

}  // namespace score::scout
