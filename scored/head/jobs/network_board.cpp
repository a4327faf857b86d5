#include "scored/head/jobs/network_board.hpp"

#include "base/errc.hpp"

#include <utility>

namespace score::head {

namespace {

constexpr std::size_t kAddressBytes = 6;

}  // namespace

std::string NetworkBoard::all_addresses(const Board& board) {
  std::string all;
  for (const std::string& of_node : board.addresses) all += of_node;
  return all;
}

void NetworkBoard::take_over(Board& board, AttemptId attempt, const Job& job,
                             const Prepared& message) {
  board.addresses.assign(job.place.nodes.size(), {});
  board.missing = board.addresses.size();
  board.key = message.key;
  board.channel = static_cast<std::uint16_t>(message.channel);
  channels_.release(attempt);
  channels_.claim(attempt, job.place, board.channel);
}

NetworkBoard::Answer NetworkBoard::request(AttemptId attempt, const Job& job,
                                           std::size_t node_index, std::uint64_t key) {
  const auto found = boards_.find(attempt);
  if (found != boards_.end()) {
    const Board& board = found->second;
    if (board.failure) return Failed{*board.failure, node_index};
    if (board.missing == 0) return Ready{all_addresses(board), node_index};
    return PrepareAll{board.key, board.channel};
  }
  Board& board = boards_[attempt];
  board.addresses.resize(job.place.nodes.size());
  board.missing = board.addresses.size();
  const auto channel = channels_.assign(attempt, job.place);
  if (!channel) {
    board.failure = channel.error().context();
    return Failed{*board.failure};
  }
  board.key = key;
  board.channel = *channel;
  return PrepareAll{board.key, board.channel};
}

Result<NetworkBoard::Answer> NetworkBoard::prepared(AttemptId attempt, const Job& job,
                                                    Prepared message) {
  const std::size_t index = message.node_index;
  if (index >= job.tasks_on_node.size() || message.key == 0 || message.channel > 0xffff ||
      message.addresses.size() != kAddressBytes * job.links * job.tasks_on_node[index]) {
    return fail(Errc::Malformed, "invalid addresses of attempt {} from its node {}", attempt,
                index);
  }
  bool is_claim = !boards_.contains(attempt);
  Board& board = boards_[attempt];
  if (board.failure) return Answer(Failed{*board.failure, index});
  if (!is_claim && message.key != board.key) {
    if (board.missing == 0) return refused(attempt, "nodes have different keys");
    if (!message.is_open) return Answer(PrepareAll{board.key, board.channel});
    is_claim = true;
  }
  if (is_claim) take_over(board, attempt, job, message);
  std::string& mine = board.addresses[index];
  const bool is_again = !mine.empty();
  if (is_again && mine != message.addresses) return refused(attempt, "a node has other sockets");
  mine = std::move(message.addresses);
  if (!is_again) --board.missing;
  if (board.missing > 0) {
    Answer answer;
    if (is_claim) answer.emplace<PrepareAll>(board.key, board.channel);
    return answer;
  }
  Ready ready{all_addresses(board)};
  if (is_again) ready.only_for = index;
  return Answer(std::move(ready));
}

NetworkBoard::Answer NetworkBoard::refused(AttemptId attempt, std::string reason) {
  const auto found = boards_.find(attempt);
  if (found == boards_.end() || found->second.failure) return {};
  channels_.release(attempt);
  found->second.failure = std::move(reason);
  return Failed{*found->second.failure};
}

void NetworkBoard::close(AttemptId attempt) {
  channels_.release(attempt);
  boards_.erase(attempt);
}

}  // namespace score::head
