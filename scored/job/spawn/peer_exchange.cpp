// This module is tested by test_spawn.py, because it needs shepherds of several nodes.
#include "scored/job/spawn/peer_exchange.hpp"

#include <utility>

namespace score::shepherd {

namespace {

constexpr base::Duration kTurn = std::chrono::seconds{1};

}  // namespace

PeerExchange::PeerExchange(EventLoop& loop, std::uint32_t node,
                           std::vector<std::uint32_t> nodes_of_tasks, Send send)
    : loop_(loop), exchange_(node, std::move(nodes_of_tasks)), send_(std::move(send)) {}

PeerExchange::~PeerExchange() {
  loop_.cancel(timer_);
}

pmix::Exchange::Token PeerExchange::expect(Answered answered) {
  waiting_[++last_token_] = std::move(answered);
  return last_token_;
}

void PeerExchange::fence(std::vector<std::uint32_t> tasks, std::string data, Answered answered) {
  exchange_.fence(expect(std::move(answered)), std::move(tasks), std::move(data),
                  base::monotonic_now());
  carry_out();
}

void PeerExchange::publish(std::uint32_t owner, const std::string& name, std::string value,
                           Answered answered) {
  exchange_.publish(expect(std::move(answered)), {{owner, name, std::move(value)}},
                    base::monotonic_now());
  carry_out();
}

void PeerExchange::lookup(const std::string& name, Answered answered) {
  exchange_.lookup(expect(std::move(answered)), {name}, {}, base::monotonic_now());
  carry_out();
}

void PeerExchange::unpublish(std::uint32_t owner, const std::string& name, Answered answered) {
  exchange_.unpublish(expect(std::move(answered)), owner, {name}, base::monotonic_now());
  carry_out();
}

void PeerExchange::receive(std::uint32_t from, const wire::PmixPeer& message) {
  // A shepherd has no data of individual ranks to return.
  if (message.kind() == wire::PmixPeer::GET) return;
  exchange_.receive(from, message);
  carry_out();
}

// An answer may cause its receiver to send another request.
void PeerExchange::carry_out() {
  auto actions = exchange_.take_actions();
  for (auto& message : actions.messages) {
    wire::JobRelay relay;
    relay.set_node_index(message.node);
    relay.set_shepherds(true);
    *relay.mutable_message() = std::move(message.message);
    send_(std::move(relay));
  }
  if (timer_ == 0 && exchange_.has_pending()) timer_ = loop_.after(kTurn, [this] { turn(); });
  for (const auto& answer : actions.answers) {
    const auto found = waiting_.find(answer.token);
    if (found == waiting_.end()) continue;
    const Answered answered = std::move(found->second);
    waiting_.erase(found);
    answered(answer);
  }
}

void PeerExchange::turn() {
  timer_ = 0;
  exchange_.turn(base::monotonic_now());
  carry_out();
}

}  // namespace score::shepherd
