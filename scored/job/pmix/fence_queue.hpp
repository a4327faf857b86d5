#pragma once
// Queues fences of the whole job in the order in which the node's ranks completed them. One is with
// the head and the rest wait, because the head handles one at a time. This class is pure; Token is
// a value that the caller gets back.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

namespace score::pmix {

struct FenceRequest {
  std::uint64_t sequence = 0;  // 1, 2 ...
  std::string data;
};

template <class Token>
class FenceQueue {
 public:
  // Adds a fence. Returns the request to send now, if any.
  std::optional<FenceRequest> enter(std::string data, Token token) {
    waiting_.push_back({std::move(data), std::move(token)});
    return waiting_.size() == 1 ? std::optional(begin()) : std::nullopt;
  }

  struct Completed {
    Token token;
    std::optional<FenceRequest> next;
  };

  // Returns nullopt for a sequence that is not pending.
  std::optional<Completed> complete(std::uint64_t sequence) {
    if (waiting_.empty() || sequence != sequence_) return std::nullopt;
    Completed out{std::move(waiting_.front().token), std::nullopt};
    waiting_.pop_front();
    if (!waiting_.empty()) out.next = begin();
    return out;
  }

 private:
  struct Waiting {
    std::string data;
    Token token;
  };

  FenceRequest begin() { return {++sequence_, std::move(waiting_.front().data)}; }

  std::deque<Waiting> waiting_;  // the first one is with the head
  std::uint64_t sequence_ = 0;
};

}  // namespace score::pmix
