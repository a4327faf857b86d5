#include "scored/head/streams/fence_board.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

// All key-values must fit into one FenceDone (64 MiB), with room for the rest of the message.
constexpr std::size_t kMaxFenceBytes = 64 * limits::kMiB - limits::kKiB;

}  // namespace

void FenceBoard::open(AttemptId attempt, std::size_t nodes) {
  Board& board = boards_[attempt];
  if (!board.entered.empty()) return;
  board.entered.resize(nodes);
  board.left.resize(nodes);
}

void FenceBoard::close(AttemptId attempt) {
  boards_.erase(attempt);
}

Result<std::optional<FenceBoard::Done>> FenceBoard::enter(AttemptId attempt, std::size_t node_index,
                                                          std::uint64_t sequence,
                                                          std::string key_values) {
  const auto found = boards_.find(attempt);
  if (found == boards_.end() || node_index >= found->second.entered.size()) {
    return fail(Errc::NotFound, "cannot enter a fence of attempt {}", attempt);
  }
  Board& board = found->second;
  if (board.last && sequence <= board.last->sequence) {
    if (sequence < board.last->sequence)
      return fail(Errc::WrongState, "the fence has already ended");
    Done again = *board.last;
    again.for_all = false;
    return std::optional(std::move(again));
  }
  if (board.count > 0 && sequence != board.sequence) {
    return fail(Errc::WrongState, "nodes wait in different PMI barriers ({} and {})",
                board.sequence, sequence);
  }
  auto& mine = board.entered[node_index];
  if (mine) return std::optional<Done>();
  if (board.bytes + key_values.size() > kMaxFenceBytes) {
    return fail(Errc::TooLarge, "PMI key-values of all ranks exceed {} bytes", kMaxFenceBytes);
  }
  board.sequence = sequence;
  board.bytes += key_values.size();
  mine = std::move(key_values);
  ++board.count;
  if (board.left[node_index]) --board.absent;
  return try_finish(board);
}

std::optional<FenceBoard::Done> FenceBoard::leave(AttemptId attempt, std::size_t node_index) {
  const auto found = boards_.find(attempt);
  if (found == boards_.end() || node_index >= found->second.left.size()) return std::nullopt;
  Board& board = found->second;
  if (board.left[node_index]) return std::nullopt;
  board.left[node_index] = true;
  if (!board.entered[node_index]) ++board.absent;
  return try_finish(board);
}

std::optional<FenceBoard::Done> FenceBoard::try_finish(Board& board) {
  if (board.count == 0 || board.count + board.absent < board.entered.size()) return std::nullopt;
  Done done;
  done.sequence = board.sequence;
  done.key_values.reserve(board.bytes);
  for (auto& of_node : board.entered) {
    if (of_node) done.key_values += *of_node;
    of_node.reset();
  }
  board.count = 0;
  board.absent = static_cast<std::size_t>(std::ranges::count(board.left, true));
  board.bytes = 0;
  board.last = done;
  return done;
}

}  // namespace score::head
