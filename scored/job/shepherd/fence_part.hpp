#pragma once
// FencePart is a node's part in the fences of one kind that span nodes. It enters a fence with the
// node's key-values, gives the head those that it fetches, and puts the result together from
// pieces. It is pure: the caller sends the messages and adds the attempt to them.

#include "proto/node.pb.h"
#include "scored/job/pmi/pmi_server.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace score::shepherd {

class FencePart {
 public:
  struct Step {
    std::optional<wire::FenceEnter> answer;
    std::optional<std::string> result;  // of the fence, which is over then
  };

  // pmix: the kind of the fences.
  explicit FencePart(bool pmix) : pmix_(pmix) {}

  // Enters a fence; one that was pending is forgotten. in_pieces: the head knows more than whole
  // key-values.
  wire::FenceEnter enter(PmiActions::Fence fence, bool in_pieces);
  // Returns the message to send again after a broken connection: it enters the pending fence, or
  // acknowledges the result of the last one.
  [[nodiscard]] std::optional<wire::FenceEnter> resume() const;
  // Handles a message about the pending fence. Others, and invalid ones, change nothing.
  Step take(const wire::FenceDone& message);

 private:
  [[nodiscard]] wire::FenceEnter message_of(wire::FenceEnter::Step step) const;
  [[nodiscard]] Step fetched(const wire::FenceDone& message) const;

  bool pmix_;
  bool in_pieces_ = false;
  std::optional<PmiActions::Fence> pending_;
  std::optional<wire::FenceEnter> last_;  // acknowledges the whole result of the last fence
  std::uint64_t total_ = 0;               // of the result, once known
  std::string result_;                    // its first bytes
};

}  // namespace score::shepherd
