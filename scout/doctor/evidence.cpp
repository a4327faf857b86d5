#include "scout/doctor/evidence.hpp"

#include "scout/session/command.hpp"
#include "scout/session/words.hpp"

namespace score::scout {

bool takes_jobs(const wire::NodeStatus& node) {
  return node.state() == wire::NodeStatus::UP && !node.drained();
}

Result<Evidence> ask_daemons(HeadLink& head) {
  Evidence evidence;
  evidence.release = SCORE_VERSION;
  auto info = head.ask<wire::Info>(wire::GetInfo());
  if (!info) return info.error();
  evidence.info = *std::move(info);
  auto nodes = head.ask<wire::NodeList>(wire::ListNodes());
  if (!nodes) return nodes.error();
  evidence.nodes = *std::move(nodes);
  // This request is the last one, because an older head closes the connection when it receives it.
  auto facts = head.ask<wire::Facts>(wire::GetFacts());
  if (facts) {
    evidence.facts = *std::move(facts);
  } else {
    evidence.why_no_facts = words_of(facts.error());
  }
  return evidence;
}

}  // namespace score::scout
