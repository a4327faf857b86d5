#pragma once
// NoticePlanner decides which notices a change of a job or node makes. It is pure.
//
// One change makes at most one notice per recipient, of the most telling kind that the recipient
// wants: a job that reached its limit makes "time_limit", else "fail", else "end". An array makes
// one notice as a whole; a recipient who wants array_tasks gets those of its tasks instead.

#include "base/ids.hpp"
#include "scored/head/config/notify_config.hpp"
#include "scored/head/notices/notice.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

class NoticePlanner {
 public:
  // Notices of different incarnations of the head have different ids.
  NoticePlanner(std::string cluster, Epoch incarnation)
      : cluster_(std::move(cluster)), incarnation_(incarnation) {}

  [[nodiscard]] std::vector<Notice> plan(const JobHappening& what, const NotifyConfig& config,
                                         WallTime now);
  [[nodiscard]] std::vector<Notice> plan(const NodeHappening& what, const NotifyConfig& config,
                                         WallTime now);

 private:
  std::string next_id();

  std::string cluster_;
  Epoch incarnation_;
  std::uint64_t last_ = 0;  // notice of this incarnation
};

// Returns what kind of notice the recipient gets; nullopt: none.
[[nodiscard]] std::optional<NoticeKind> chosen_kind(const JobHappening& what,
                                                    const NoticeChoice& choice);

// Returns true if a change of a job could make a notice: its user or a webhook wants some.
[[nodiscard]] bool is_wanted(const NoticeChoice& mail, const NotifyConfig& config);

}  // namespace score::head
