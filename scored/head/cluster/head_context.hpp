#pragma once
// HeadContext has references to what nearly every part of the head uses: the configuration, the
// cluster, jobs and nodes, and where changes are recorded and shown. Each part takes it together
// with the few parts that only it needs.

#include "base/async/alarm.hpp"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/cluster/event_feed.hpp"
#include "scored/head/cluster/lease_check.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/store/commit_log.hpp"

namespace score::head {

class JobTable;

// All references, and the context itself, must outlive the parts.
struct HeadContext {
  const HeadConfig& config;  // a reload changes it
  ClusterRunner& runner;
  JobTable& jobs;
  NodeLinks& links;
  Users& users;
  StoreReader& reader;
  CommitLog& commits;
  EventFeed& feed;
  Alarm& alarm;
  const LeaseCheck& lease;
};

}  // namespace score::head
