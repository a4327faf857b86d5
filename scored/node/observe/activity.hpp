// What the tasks of an attempt do, from their processor time and their PM contexts.
#pragma once

#include "base/model/model.hpp"
#include "scored/node/network/job_contexts.hpp"

namespace score::node {

// `contexts` null: the attempt has no network. A context that cannot be read waits for nothing and
// has sent nothing: its owner spoils its own job's figures alone.
[[nodiscard]] base::Activity read_activity(bool is_idle, const ContextSet* contexts);

}  // namespace score::node
