// Writes the texts of `scontrol show`.
#pragma once

#include "scout/slurm/cluster_list.hpp"

#include <string>

namespace score::scout::slurm {

struct ShowStyle {
  bool one_line = false;
};

std::string show_job(const wire::JobStatus& job, ShowStyle style);
std::string show_node(const NodeRow& node, const wire::Info& info, ShowStyle style);
std::string show_partition(const std::string& name, const ClusterRows& rows, ShowStyle style);
std::string show_config(const wire::Info& info);

}  // namespace score::scout::slurm
