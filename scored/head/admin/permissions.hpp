#pragma once
// Decides who may do what. Every request is checked and refused here, whichever way it came. The
// permission table (proto/permissions.md) says most of it; three things it cannot say are here:
//   towards a job its user is its owner, operators included;
//   who gives a job input acts as its user: that is for the owner and root;
//   operators send other users' jobs only the signals that end, stop and continue them;
//   a command on a node that is no login node is about its user's jobs there (Peer::steps_on).
// Each refusal is counted and leaves a line in the log, at a limited rate.

#include "base/os/log.hpp"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/config/users.hpp"
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
    JobId job;                  // 0: it is not about a job
    JobId inside{};             // a submission: the job that it is a step of; 0: of none
    std::string_view action{};  // for messages, "cancel"; empty: the frame's name
    bool drives = false;        // as front end, or by giving it input
    int signal = 0;             // 0: none
    bool is_greeted = true;     // the sender has said hello
  };

  // [frame, reason]: refusals so far. Few: both are names of ours.
  using Counts = std::map<std::pair<std::string_view, std::string_view>, std::uint64_t>;

  // Both outlive it.
  Permissions(const ClusterRunner& runner, const JobQueries& queries)
      : runner_(runner), queries_(queries) {}

  // Errors: Denied, and NotFound for a job that never was.
  [[nodiscard]] Status check(const Peer& peer, const Request& request);
  // Counts and logs a refusal for a reason that the caller has found; the error has the text.
  Error refuse(const Peer& peer, const Request& request, std::string_view reason, std::string text);

  [[nodiscard]] const Counts& denied() const { return denied_; }

 private:
  Status check_steps_only(const Peer& peer, const Request& request);

  const ClusterRunner& runner_;
  const JobQueries& queries_;
  LogLimiter lines_;
  Counts denied_;
};

}  // namespace score::head
