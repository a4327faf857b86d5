#pragma once
// Notices passes on what has happened to jobs and nodes: the planner decides which notices that
// makes, and the outlet sends them.
//
// A notice of a job is made when its change is on disk, and is only in memory. So a head that
// restarts sends no notice of a job twice, and loses those that were not sent (docs/adr/0120).

#include "base/text/shared_text.hpp"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/notices/notice.hpp"
#include "scored/head/notices/notice_planner.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace score::head {

struct NoticeCounts {
  std::uint64_t sent = 0;
  std::uint64_t failed = 0;   // given up after all tries
  std::uint64_t dropped = 0;  // too many waited
};

// NoticeOutlet takes notices and never blocks.
class NoticeOutlet {
 public:
  virtual void send(Notice notice) = 0;
  [[nodiscard]] virtual std::map<NoticeChannel, NoticeCounts> counts() const = 0;

 protected:
  ~NoticeOutlet() = default;
};

class Notices {
 public:
  // `head` must outlive the object.
  Notices(HeadContext& head, Epoch incarnation)
      : head_(head), planner_(head.config.cluster, incarnation) {}

  // Without an outlet notices are discarded. `outlet` must outlive the object.
  void connect(NoticeOutlet& outlet) { outlet_ = &outlet; }

  // ---- what is wanted; `request` is JobInfo::notices
  // Returns true if a change of such a job could make a notice.
  [[nodiscard]] bool is_wanted(const SharedText& request) const;
  // Returns true if somebody wants to know when parts of the time limits are used.
  [[nodiscard]] bool wants_limit_parts(const SharedText& request) const;
  // Returns true if the user can be sent no mail that `request` asks for.
  [[nodiscard]] bool lacks_mail(const SharedText& request) const;

  // ---- what has happened
  // Describes a change of a job; nullopt: no notice is wanted.
  [[nodiscard]] std::optional<JobHappening> describe(const SharedText& request, NoticeKinds kinds,
                                                     wire::JobStatus job) const;
  // Makes the notices when everything that was added to the commit log before is on disk.
  void when_stored(JobHappening what);
  // Makes the notices now. The change must be on disk.
  void stored(const JobHappening& what);
  // Must be called at each change of a node's state.
  void node_changed(NodeId node, const gang::NodeView& view);

  // Returns what became of the notices so far.
  [[nodiscard]] std::map<NoticeChannel, NoticeCounts> counts() const;

 private:
  void send(std::vector<Notice> notices);

  HeadContext& head_;
  NoticePlanner planner_;
  NoticeOutlet* outlet_ = nullptr;
  std::set<NodeId> down_;
};

// Checks what a submission asks for. Errors: Malformed, TooLarge.
[[nodiscard]] Status check_notice_request(const wire::NoticeRequest& request);

}  // namespace score::head
