#pragma once
// FenceExchange passes the result of one fence on to its nodes. The result is the key-values of all
// nodes in order. The class is pure: it takes events and returns actions.
//
// The result travels in pieces. A piece is fetched from the node whose key-values it is part of,
// unless that node has already sent them, then sent to all nodes, and dropped when all of them have
// taken it. At most a window of the result is in memory at a time, so that a result of any size
// costs the head little, and other messages go between the pieces.
//
// Nodes of an older release know no pieces. If one of them takes part, the result is collected in
// memory and sent as a whole.

#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace score::head {

// FetchPiece asks a node for a part of its own key-values.
struct FetchPiece {
  std::size_t node = 0;
  std::uint64_t sequence = 0;
  std::uint64_t offset = 0;  // in the key-values of this node
  std::uint32_t bytes = 0;
};

// SendPiece sends a part of the result to nodes.
struct SendPiece {
  std::vector<std::size_t> nodes;
  std::uint64_t sequence = 0;
  std::uint64_t offset = 0;  // in the result
  std::uint64_t total = 0;   // size of the result; 0: `data` is the whole result
  std::shared_ptr<const std::string> data;
};

using FenceAction = std::variant<FetchPiece, SendPiece>;
using FenceActions = std::vector<FenceAction>;

// FenceEntry is what a node enters a fence with.
struct FenceEntry {
  std::uint64_t sequence = 0;
  bool takes_pieces = false;  // false: an older release; key_values has all
  std::uint64_t bytes = 0;    // size of the node's key-values
  std::uint64_t taken = 0;    // how much of the result it has, from an earlier head
  std::string key_values{};   // all of them, or none: they are fetched then

  [[nodiscard]] bool is_held() const { return key_values.size() == bytes; }
};

class FenceExchange {
 public:
  static constexpr std::uint64_t kMinWindow = 16 * limits::kKiB;
  static constexpr std::uint64_t kMaxWindow = 256 * limits::kKiB;
  // The windows of all nodes together are about this large, unless there are very many nodes.
  static constexpr std::uint64_t kMaxInFlight = 2 * limits::kMiB;

  // Returns the size of the window for this number of nodes.
  static std::uint64_t window_of(std::size_t nodes);

  // entries: by node; a node that does not take part has an entry without bytes. has_left: by node;
  // nodes that get no result and cannot be asked for key-values.
  FenceExchange(std::vector<FenceEntry> entries, std::vector<bool> has_left);

  FenceActions start();
  // Errors: Malformed (not as many bytes as were fetched). A piece that is not missing is ignored.
  Result<FenceActions> piece(std::size_t node, std::uint64_t offset, std::string data);
  // The node has the first `offset` bytes of a result of `total` bytes. Errors: WrongState (more
  // than was sent). An acknowledgment of a result of another size is ignored.
  Result<FenceActions> taken(std::size_t node, std::uint64_t offset, std::uint64_t total);
  // The connection of the node broke: it gets what it may have lost, and is asked again.
  [[nodiscard]] FenceActions resume(std::size_t node) const;
  // The tasks of the node have ended. If its key-values were not fetched yet, the result is sent
  // again without them.
  FenceActions leave(std::size_t node);

  // Returns true if all nodes have the result, or will be sent whole().
  [[nodiscard]] bool is_done() const { return base_ == total_; }

  [[nodiscard]] bool is_whole() const { return is_whole_; }

  // Returns the result, if is_done() and is_whole().
  std::string take_whole() { return std::move(whole_); }

  [[nodiscard]] std::uint64_t total() const { return total_; }

 private:
  struct Node {
    FenceEntry entry;
    std::uint64_t begin = 0;  // of its key-values in the result
    std::uint64_t taken = 0;
    bool has_left = false;
  };

  struct Piece {
    std::size_t source = 0;
    std::uint32_t bytes = 0;
    std::shared_ptr<const std::string> data;  // null: not arrived
  };

  [[nodiscard]] SendPiece sending(std::uint64_t offset, const Piece& piece) const;
  void restart(FenceActions& actions);
  void pump(FenceActions& actions);
  void flush(FenceActions& actions);
  void settle(FenceActions& actions);
  void find_base();

  std::vector<Node> nodes_;
  bool is_whole_ = false;
  std::uint64_t sequence_ = 0;
  std::uint64_t total_ = 0;
  std::map<std::uint64_t, Piece> pieces_;  // by offset; from base_ to next_
  std::uint64_t base_ = 0;                 // all nodes have taken the result up to here
  std::size_t at_base_ = 0;                // nodes that have taken no more than that
  std::uint64_t sent_ = 0;
  std::uint64_t next_ = 0;
  std::size_t source_ = 0;  // the node whose key-values contain next_
  std::string whole_;
};

}  // namespace score::head
