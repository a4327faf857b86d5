#pragma once
// Permissions decides who may do what. Every request is checked and refused here, whichever way it
// came. Most rules are in the permission table (proto/permissions.md). Four rules that the table
// cannot express are here:
//   a job's user is its owner, even if that user is an operator;
//   a user who gives a job input acts as its user, so only the owner and root may do that;
//   operators may send other users' jobs only the signals that end, stop and continue them;
//   a command of a task on a node that is not a login node may act only on the job of that task,
//   while the task's attempt runs there (Peer::task).
// Each refusal is counted, and logged at a limited rate.

#include "base/os/log.hpp"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/jobs/attempt_secrets.hpp"
#include "scored/head/jobs/job_queries.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace score::head {

class Permissions {
 public:
  struct Request {
    proto::FrameType type{};
    JobId job;               // 0: not about a job
    JobId inside{};          // for a submission: the job that it is a step of; 0: none
    std::string action{};    // for messages, such as "cancel"; empty: the frame's name
    bool drives = false;     // as front end, or by giving it input
    int signal = 0;          // 0: none
    bool is_greeted = true;  // the sender has said hello
  };

  // Refusals so far by [frame, reason]. There are few keys, because both are fixed names.
  using Counts = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;

  // All references must outlive this object.
  Permissions(const ClusterRunner& runner, const JobQueries& queries, const AttemptSecrets& secrets)
      : runner_(runner), queries_(queries), secrets_(secrets) {}

  // Errors: Denied, and NotFound for a job that never existed.
  [[nodiscard]] Status check(const Peer& peer, const Request& request);
  // Counts and logs a refusal for a reason that the caller found; the error has the text.
  Error refuse(const Peer& peer, const Request& request, std::string_view reason, std::string text);

  [[nodiscard]] const Counts& denied() const { return denied_; }

 private:
  Status check_task(const Peer& peer, const Request& request);

  const ClusterRunner& runner_;
  const JobQueries& queries_;
  const AttemptSecrets& secrets_;
  LogLimiter lines_;
  Counts denied_;
};

}  // namespace score::head
