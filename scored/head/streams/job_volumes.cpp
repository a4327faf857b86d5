#include "scored/head/streams/job_volumes.hpp"

#include "base/os/log.hpp"

#include <algorithm>

namespace score::head {

void JobVolumes::ready(NodeId node, const wire::ScratchReady& message) {
  const AttemptId attempt(message.attempt());
  const auto view = head_.runner.view(job_of(attempt));
  if (!view || view->attempt != attempt || is_final(view->state)) return;
  const auto mine = std::ranges::find(view->nodes, node);
  if (mine == view->nodes.end() || view->request.scratch == Bytes(0)) return;
  const auto index = static_cast<std::size_t>(mine - view->nodes.begin());
  const auto answer = collector_.ready(attempt, view->nodes.size(), index, message.server());
  if (!answer) {
    log_warning("Ignored the volume server of a node", kv("node", head_.links.name(node)),
                kv("err", answer.error()));
    return;
  }
  if (!*answer) return;
  wire::ScratchServers servers;
  servers.set_attempt(attempt.value());
  for (const std::string& server : (*answer)->servers) servers.add_servers(server);
  const auto frame = proto::encode_frame(servers);
  for (std::size_t i = 0; i < view->nodes.size(); ++i) {
    const bool is_meant = !(*answer)->only_for || *(*answer)->only_for == i;
    if (is_meant) head_.links.send_shared(view->nodes[i], frame);
  }
}

}  // namespace score::head
