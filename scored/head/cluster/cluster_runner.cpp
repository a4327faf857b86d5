#include "scored/head/cluster/cluster_runner.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace score::head {

ClusterRunner::ClusterRunner(Clock& clock, gang::ClusterConfig config)
    : clock_(clock), cluster_(std::move(config)) {}

void ClusterRunner::perform(gang::Actions actions) {
  std::move(actions.begin(), actions.end(), std::back_inserter(actions_));
  if (std::exchange(is_performing_, true)) return;
  while (!actions_.empty() || !changed_.empty()) {
    if (!actions_.empty()) {
      gang::Action next = std::move(actions_.front());
      actions_.pop_front();
      perform_one(std::move(next));
    } else {
      const JobId job = *changed_.begin();
      changed_.erase(changed_.begin());
      handlers_.job_changed(job);
    }
  }
  is_performing_ = false;
  handlers_.settled();
}

void ClusterRunner::perform_one(gang::Action&& action) {
  if (auto* message = std::get_if<gang::SendToNode>(&action)) {
    handlers_.send(message->node, std::move(message->message));
  } else if (const auto* job = std::get_if<gang::JobChanged>(&action)) {
    touch(job->job);
  } else if (const auto* node = std::get_if<gang::NodeChanged>(&action)) {
    handlers_.node_changed(node->node);
  }
}

}  // namespace score::head
