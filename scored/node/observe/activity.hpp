// Determines whether the tasks of an attempt work or wait, from their processor time and their PM
// contexts.
#pragma once

#include "base/model/model.hpp"
#include "scored/node/channel/job_contexts.hpp"

namespace score::node {

// `contexts` is null if the attempt has no network. A context that cannot be read counts as not
// waiting and without messages, so its owner can only spoil the figures of its own job. If all
// wait, `tasks` says what the first of them wait for.
[[nodiscard]] base::Activity read_activity(bool is_idle, const ContextSet* contexts);

}  // namespace score::node
