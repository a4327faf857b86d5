#pragma once
// Fence serves the PMI barriers of one kind of an attempt that spans nodes, one after the other.
// Each node enters a fence with the key-values that its ranks put since the last one. When all
// nodes have entered, FenceExchange passes all key-values on to them. The class is pure: it takes
// events and returns actions.
//
// A node whose connection broke enters again. Entering the same fence twice counts once. A node
// whose tasks have all ended is skipped.

#include "scored/head/fences/fence_exchange.hpp"

#include <optional>

namespace score::head {

class Fence {
 public:
  explicit Fence(std::size_t nodes) : left_(nodes), was_repeated_(nodes) {}

  // Errors: NotFound (no such node), WrongState (a fence before the last finished one, nodes in
  // different fences, or the same fence more than once again over the same connection), TooLarge
  // (all key-values together). The job cannot continue after an error.
  Result<FenceActions> enter(std::size_t node, FenceEntry entry);
  // Errors: as FenceExchange. Nothing changes if no such fence is in progress.
  Result<FenceActions> piece(std::size_t node, std::uint64_t sequence, std::uint64_t offset,
                             std::string data);
  Result<FenceActions> taken(std::size_t node, std::uint64_t sequence, std::uint64_t offset,
                             std::uint64_t total);
  // The node's tasks have all ended, so no fence waits for it. A repeated call changes nothing.
  FenceActions leave(std::size_t node);
  void link_lost(std::size_t node);

  // All nodes have entered a fence; start() begins to pass on its result.
  [[nodiscard]] bool is_ready() const {
    return !exchange_ && gathering_.count > 0 &&
           gathering_.count + gathering_.absent == left_.size();
  }

  FenceActions start();

  [[nodiscard]] std::size_t size() const { return left_.size(); }

  [[nodiscard]] bool is_exchanging() const { return exchange_.has_value(); }

  // Returns true if the result must be collected in memory, because of a node of an older release.
  [[nodiscard]] bool is_whole() const;
  // Returns the size of the result of the fence that is_ready() or is exchanged.
  [[nodiscard]] std::uint64_t total() const;

  // Returns the bytes of key-values in memory, except for the window of the exchange.
  [[nodiscard]] std::uint64_t held_bytes() const { return held_; }

  // Returns what an exchange puts into the queues of connections, at most.
  [[nodiscard]] std::uint64_t in_flight_bytes() const {
    return left_.size() * FenceExchange::window_of(left_.size());
  }

 private:
  struct Gathering {
    std::vector<std::optional<FenceEntry>> entries;  // by node; empty until the first one enters
    std::size_t count = 0;                           // of entries
    std::size_t absent = 0;                          // nodes that have left and not entered
    std::size_t older = 0;                           // entries of nodes of an older release
    std::uint64_t sequence = 0;                      // meaningful if count > 0
    std::uint64_t total = 0;
  };

  struct Last {
    std::uint64_t sequence = 0;
    std::shared_ptr<const std::string> result;  // null: all nodes have taken it
  };

  Result<FenceActions> repeat(std::size_t node, std::uint64_t sequence);
  void finish_if_done(FenceActions& actions);

  Gathering gathering_;
  std::vector<bool> left_;          // by node
  std::vector<bool> was_repeated_;  // by node, over its present connection
  std::optional<FenceExchange> exchange_;
  std::uint64_t exchanged_ = 0;  // sequence of exchange_
  std::optional<Last> last_;
  std::uint64_t held_ = 0;  // by gathering_ and last_
};

}  // namespace score::head
