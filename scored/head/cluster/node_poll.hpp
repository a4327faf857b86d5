#pragma once
// NodePoll sends a request to several nodes. It is done when all have replied or at its deadline,
// and then names the silent ones.

#include "base/async/alarm.hpp"
#include "base/result.hpp"
#include "base/shares.hpp"
#include "scored/head/cluster/node_links.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

// Answers is the type that collects the replies; it must have add_silent_nodes(std::string). All
// calls come from one thread.
template <class Answers>
class NodePoll {
 public:
  using Done = std::function<void(Answers)>;

  static constexpr Duration kDeadline = std::chrono::seconds(2);

  struct Call {
    Answers first;  // to which the replies are added
    Done done;
    Duration deadline = kDeadline;
  };

  // All references must outlive this object.
  NodePoll(Clock& clock, NodeLinks& links, Alarm& alarm)
      : clock_(clock), links_(links), alarm_(alarm) {}

  // Asks each of the nodes; question(tag) returns the message. `asker` has a share of the requests,
  // which are few because each one costs every node some work. Errors: Busy.
  template <class Question>
  [[nodiscard]] Status ask(const std::string& asker, const std::vector<NodeId>& nodes,
                           Question question, Call call) {
    if (!counts_.has_place(asker)) {
      return fail(Errc::Busy,
                  "{} such requests to all nodes are in progress, {} of yours; try again",
                  counts_.taken(), counts_.taken_by(asker));
    }
    counts_.take(asker);
    const std::uint64_t tag = next_tag_++;
    Poll& poll = polls_[tag];
    poll.asker = asker;
    poll.answers = std::move(call.first);
    poll.done = std::move(call.done);
    const auto message = question(tag);
    const auto frame = proto::encode_frame(proto::frame_type<decltype(question(tag))>(),
                                           message.SerializeAsString());
    for (const NodeId node : nodes) {
      poll.missing.insert(node);
      links_.send_shared(node, frame);
    }
    poll.until = clock_.now() + (nodes.empty() ? Duration(0) : call.deadline);
    alarm_.at(poll.until);
    return {};
  }

  // Takes a node's reply; add(answers) stores it. The reply is dropped if the node was not asked or
  // has already replied.
  template <class Add>
  void answer(std::uint64_t tag, NodeId node, Add add) {
    const auto found = polls_.find(tag);
    if (found == polls_.end() || found->second.missing.erase(node) == 0) return;
    add(found->second.answers);
    if (!found->second.missing.empty()) return;
    found->second.until = clock_.now();
    tick(clock_.now());
  }

  // ---- called in turn
  void tick(TimePoint now) {
    for (auto next = polls_.begin(); next != polls_.end();) {
      const auto current = next++;
      if (current->second.until > now) continue;
      Poll poll = std::move(current->second);
      polls_.erase(current);
      counts_.give_back(poll.asker);
      for (const NodeId node : poll.missing) poll.answers.add_silent_nodes(links_.name(node));
      poll.done(std::move(poll.answers));
    }
  }

  [[nodiscard]] std::optional<TimePoint> next_deadline() const {
    std::optional<TimePoint> next;
    for (const auto& [tag, poll] : polls_) {
      if (!next || poll.until < *next) next = poll.until;
    }
    return next;
  }

 private:
  struct Poll {
    std::string asker;
    Answers answers;
    std::set<NodeId> missing;
    TimePoint until{};
    Done done;
  };

  Clock& clock_;
  NodeLinks& links_;
  Alarm& alarm_;
  std::map<std::uint64_t, Poll> polls_;
  ShareCounter<std::string> counts_{shares::kPolls};
  std::uint64_t next_tag_ = 1;
};

}  // namespace score::head
