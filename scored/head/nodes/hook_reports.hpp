#pragma once
// HookReports drains nodes whose hooks have failed, and resumes them when their health check passes
// again. A report is acknowledged when the drain is on disk; until then the node repeats it.

#include "base/async/token_bucket.hpp"
#include "proto/node.pb.h"
#include "proto/transport/connection.hpp"
#include "scored/head/cluster/head_context.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace score::head {

// The reason of a drain begins with this if the health check made it. Only such drains end when the
// check passes.
inline constexpr std::string_view kHealthReason = "health check: ";

class HookReports {
 public:
  explicit HookReports(HeadContext& head) : head_(head) {}

  // `connection` is the node's.
  void reported(NodeId node, const wire::HookReport& message,
                std::shared_ptr<proto::Connection> connection);

 private:
  // A node can only drain itself, but each change is written to the disk.
  static constexpr double kChangesPerSecond = 1;
  static constexpr double kChangesAtOnce = 32;

  void drain(NodeId node, std::string reason, CommitLog::Callback stored);
  void resume(NodeId node, CommitLog::Callback stored);
  void tell_job(NodeId node, JobId job, const std::string& text);

  HeadContext& head_;
  std::map<NodeId, TokenBucket> paces_;
};

}  // namespace score::head
