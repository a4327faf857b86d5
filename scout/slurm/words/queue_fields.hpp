// Declares the columns of squeue.
#pragma once

#include "proto/client.pb.h"
#include "scout/slurm/words/format.hpp"

#include <span>

namespace score::scout::slurm {

std::span<const Field<wire::JobStatus>> queue_fields();

}  // namespace score::scout::slurm
