#include "scored/job/spawn/spawn_manager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;
using wire::SpawnPeer;

constexpr base::Duration kRepeatAfter = 1s;
constexpr std::size_t kMaxWaiting = 1024;   // requests of the whole job
constexpr std::size_t kMaxAnswered = 4096;  // answers that are kept

SpawnPeer message_of(SpawnPeer::Kind kind, std::uint32_t world = 0, std::string reason = {}) {
  SpawnPeer message;
  message.set_kind(kind);
  if (world != 0) message.mutable_world()->set_number(world);
  message.set_reason(std::move(reason));
  return message;
}

std::uint64_t size_of(const wire::SpawnedWorld& world) {
  std::uint64_t tasks = 0;
  for (const auto& program : world.programs()) tasks += program.tasks();
  return tasks;
}

}  // namespace

SpawnManager::SpawnManager(Job job) : job_(std::move(job)) {
  const std::size_t begun = job_.nodes_of_tasks.size() - job_.spawn;
  for (std::size_t i = 0; i < begun; ++i) ++tasks_on_[job_.nodes_of_tasks[i]];
}

SpawnManager::Actions SpawnManager::take_actions() {
  return std::exchange(actions_, Actions());
}

bool SpawnManager::has_pending() const {
  return !asked_.empty() || order_ || (idle_count_ && !is_closed_);
}

void SpawnManager::send(std::uint32_t node, SpawnPeer message) {
  if (node == job_.node) return receive(node, message);
  actions_.messages.push_back({node, std::move(message)});
}

// ---- this node

void SpawnManager::request(std::uint64_t token, wire::SpawnedWorld world, base::TimePoint now) {
  repeated_ = now;
  SpawnPeer message;
  message.set_kind(SpawnPeer::REQUEST);
  message.set_request(++last_request_);
  *message.mutable_world() = std::move(world);
  asked_[last_request_] = {token, message};
  send(first_node(), std::move(message));
}

void SpawnManager::checked(std::uint32_t world, const std::string& reason) {
  checks_[world] = reason;
  send(first_node(), message_of(SpawnPeer::CHECKED, world, reason));
}

void SpawnManager::started(std::uint32_t world, const std::string& reason) {
  starts_[world] = reason;
  send(first_node(), message_of(SpawnPeer::STARTED, world, reason));
}

void SpawnManager::idle(std::uint32_t count) {
  if (is_closed_ || idle_count_ == count) return;
  idle_count_ = count;
  send_idle();
}

void SpawnManager::send_idle() {
  auto message = message_of(SpawnPeer::IDLE);
  message.set_started(*idle_count_);
  send(first_node(), std::move(message));
}

void SpawnManager::turn(base::TimePoint now) {
  if (now - repeated_ < kRepeatAfter) return;
  repeated_ = now;
  for (const auto& [request, asked] : asked_) {
    if (!decides()) actions_.messages.push_back({first_node(), asked.message});
  }
  if (order_) send_step();
  if (idle_count_ && !is_closed_ && !decides()) send_idle();
}

// ---- incoming messages

void SpawnManager::receive(std::uint32_t from, const SpawnPeer& message) {
  switch (message.kind()) {
    case SpawnPeer::REQUEST:
      return on_request(from, message);
    case SpawnPeer::ANSWER:
      return from == first_node() ? on_answer(message) : void();
    case SpawnPeer::CHECK:
      return from == first_node() ? on_check(message) : void();
    case SpawnPeer::CHECKED:
      return on_reply(from, message, Step::Check);
    case SpawnPeer::START:
      return from == first_node() ? on_start(message) : void();
    case SpawnPeer::STARTED:
      return on_reply(from, message, Step::Start);
    case SpawnPeer::IDLE:
      return on_idle(from, message);
    case SpawnPeer::CLOSE:
      if (from == first_node() && !std::exchange(is_closed_, true)) actions_.closes = true;
      return;
    default:
      return;  // the kind belongs to a later version
  }
}

void SpawnManager::on_answer(const SpawnPeer& message) {
  const auto found = asked_.find(message.request());
  if (found == asked_.end()) return;
  actions_.answers.push_back({found->second.token, message.world().number(), message.reason()});
  asked_.erase(found);
}

void SpawnManager::on_check(const SpawnPeer& message) {
  const auto world = message.world().number();
  if (is_closed_ || starts_.contains(world)) return;
  const auto said = checks_.find(world);
  if (said != checks_.end()) return checked(world, said->second);
  checks_.clear();  // checks of earlier worlds
  actions_.check = message.world();
}

void SpawnManager::on_start(const SpawnPeer& message) {
  const auto world = message.world().number();
  const auto said = starts_.find(world);
  if (said != starts_.end()) return said->second ? started(world, *said->second) : void();
  if (is_closed_) return;
  starts_[world].reset();
  idle_count_.reset();
  actions_.start = message.world();
}

// ---- the first node

void SpawnManager::on_request(std::uint32_t from, const SpawnPeer& message) {
  if (!decides()) return;
  const Asker asker(from, message.request());
  const auto said = answered_.find(asker);
  if (said != answered_.end()) return send(from, said->second);
  const auto is_it = [&](const auto& waiting) { return waiting.first == asker; };
  if ((order_ && order_->asker == asker) || std::ranges::any_of(waiting_, is_it)) return;
  if (is_over_) return answer(asker, 0, "the job is about to end");
  if (waiting_.size() >= kMaxWaiting) return answer(asker, 0, "too many pending spawn requests");
  waiting_.emplace_back(asker, message.world());
  begin_next();
}

void SpawnManager::begin_next() {
  while (!order_ && !waiting_.empty()) {
    auto [asker, world] = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto reason = choose_places(world); !reason.empty()) {
      answer(asker, 0, reason);
      continue;
    }
    world.set_number(last_world_ + 1);
    order_.emplace(Order{asker, std::move(world), Step::Check, {}});
    send_step();
  }
}

std::string SpawnManager::choose_places(wire::SpawnedWorld& world) const {
  const std::uint64_t wanted = size_of(world);
  const std::uint32_t room = job_.spawn - used_;
  if (wanted > room) {
    return fmt::format(
        "MPI_Comm_spawn of {} tasks: there is room for {} more; start the job with "
        "scrun --spawn {}",
        wanted, room, used_ + wanted);
  }
  if (wanted == 0) return "MPI_Comm_spawn of 0 tasks";
  const std::size_t first = job_.nodes_of_tasks.size() - room;
  world.clear_places();
  for (std::uint64_t i = 0; i < wanted; ++i) {
    world.add_places(static_cast<std::uint32_t>(first + i));
  }
  return {};
}

// Checks concern only the nodes of the new tasks; every node learns of the start.
std::set<std::uint32_t> SpawnManager::nodes_of(const Order& order) const {
  std::set<std::uint32_t> nodes;
  if (order.step == Step::Start)
    nodes.insert(job_.nodes_of_tasks.begin(), job_.nodes_of_tasks.end());
  for (const auto place : order.world.places()) nodes.insert(job_.nodes_of_tasks[place]);
  return nodes;
}

void SpawnManager::send_step() {
  const auto kind = order_->step == Step::Check ? SpawnPeer::CHECK : SpawnPeer::START;
  auto message = message_of(kind);
  *message.mutable_world() = order_->world;
  const auto said = order_->answers;
  for (const std::uint32_t node : nodes_of(*order_)) {
    if (!said.contains(node)) send(node, message);
  }
}

void SpawnManager::on_reply(std::uint32_t from, const SpawnPeer& message, Step step) {
  const bool is_it =
      order_ && order_->step == step && message.world().number() == order_->world.number();
  if (!is_it || !nodes_of(*order_).contains(from)) return;
  order_->answers[from] = message.reason();
  if (order_->answers.size() == nodes_of(*order_).size()) finish_step();
}

void SpawnManager::finish_step() {
  std::string reason;
  for (const auto& [node, why] : order_->answers) reason = reason.empty() ? why : reason;
  if (reason.empty() && order_->step == Step::Check) {
    last_world_ = order_->world.number();
    used_ += static_cast<std::uint32_t>(order_->world.places_size());
    for (const auto place : order_->world.places()) ++tasks_on_[job_.nodes_of_tasks[place]];
    order_->step = Step::Start;
    order_->answers.clear();
    return send_step();
  }
  // A world number is used only once, even if the world was refused, because nodes remember their
  // answers.
  last_world_ = order_->world.number();
  const Order done = std::move(*order_);
  order_.reset();
  answer(done.asker, reason.empty() ? done.world.number() : 0, reason);
  begin_next();
  close_if_over();
}

void SpawnManager::answer(const Asker& asker, std::uint32_t world, const std::string& reason) {
  auto message = message_of(SpawnPeer::ANSWER, world, reason);
  message.set_request(asker.second);
  if (answered_.size() >= kMaxAnswered) answered_.erase(answered_.begin());
  answered_[asker] = message;
  send(asker.first, std::move(message));
}

void SpawnManager::on_idle(std::uint32_t from, const SpawnPeer& message) {
  if (!decides()) return;
  if (is_over_) return send(from, message_of(SpawnPeer::CLOSE));
  idle_on_[from] = message.started();
  close_if_over();
}

void SpawnManager::close_if_over() {
  if (is_over_ || order_ || !waiting_.empty()) return;
  for (const auto& [node, tasks] : tasks_on_) {
    const auto idle = idle_on_.find(node);
    if (tasks > 0 && (idle == idle_on_.end() || idle->second < tasks)) return;
  }
  is_over_ = true;
  const std::set<std::uint32_t> nodes(job_.nodes_of_tasks.begin(), job_.nodes_of_tasks.end());
  for (const std::uint32_t node : nodes) send(node, message_of(SpawnPeer::CLOSE));
}

}  // namespace score::shepherd
