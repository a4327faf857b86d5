#pragma once
// Declares what has happened (JobHappening, NodeHappening) and what is sent about it (Notice). All
// are plain values.

#include "base/ids.hpp"
#include "base/request/notices.hpp"
#include "base/time.hpp"
#include "proto/client.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace score::head {

// JobHappening is a change of a job that is on disk.
struct JobHappening {
  NoticeKinds kinds;    // all that the change is: a job that reached its limit ended, too
  wire::JobStatus job;  // after the change
  NoticeChoice mail;    // what its user asked for; empty: no mail
  std::string address;  // where mail goes
};

struct NodeHappening {
  NoticeKind kind = NoticeKind::NodeDown;
  std::string node;
  std::string reason;
};

enum class NoticeChannel : std::uint8_t {
  Mail,     // text for the mail program, or JSON for [notify] command
  Webhook,  // JSON
};

struct Notice {
  NoticeChannel channel = NoticeChannel::Mail;
  std::string url{};                   // of the webhook
  std::vector<std::string> command{};  // of mail: program and arguments
  UserId user;                         // whose share of the queue it takes
  std::string id;    // unique in the cluster; the same when a notice is sent again
  std::string text;  // message with its header, or JSON
};

}  // namespace score::head
