// This file is the shepherd's part of starting tasks at the request of programs. Tested by
// test_spawn.py, because it needs real MPI libraries.
#include "base/exit_codes.hpp"
#include "scored/job/shepherd/shepherd.hpp"

#include <utility>

namespace score::shepherd {

void Shepherd::make_spawning() {
  SpawnHub::Handlers handlers;
  handlers.send = [this](wire::JobRelay&& message) {
    message.set_attempt(plan_->prepare.attempt());
    link_.send(message);
  };
  handlers.start = [this](Plan&& world) { start_world(std::move(world)); };
  handlers.closes = [this] { end_spawning(); };
  spawning_.emplace(loop_, *plan_, std::move(handlers));
}

// Requests that arrive before this node's tasks have started are repeated by their senders. Other
// nodes may ask until the job's end, because their messages or the answers may have been lost.
void Shepherd::on_relay(const proto::InFrame& frame) {
  wire::JobRelay message;
  if (!servers_ || !message.ParseFromString(frame.payload)) return;
  if (!message.has_spawn()) return servers_->relay(message);
  const bool has_started = spawning_ && phase_ >= Phase::Running;
  if (has_started) spawning_->receive(message.node_index(), message.spawn());
}

void Shepherd::start_world(Plan&& world) {
  starting_ = std::move(world);
  if (!servers_->add_world(*starting_)) fork_world();
}

void Shepherd::fork_world() {
  if (starting_->members.empty()) return end_world("");
  if (auto sent = spawner_.prepare(prepare_bytes(*starting_), true); !sent) {
    return end_world(sent.error().message());
  }
  spawner_.begin(starting_->members.front(), static_cast<std::uint32_t>(starting_->members.size()));
}

// Some tasks of the world may already run on other nodes. In that case the job cannot continue.
void Shepherd::end_world(const std::string& reason) {
  const Plan world = std::move(*starting_);
  starting_.reset();
  if (!reason.empty()) {
    abort_job({world.prepare.world().parent(), kExitError, "cannot start tasks: " + reason});
  } else if (!world.members.empty()) {
    send_started();
    output_.watch();
  }
  spawning_->started(world.world(), reason);
  reap();
}

// Ends the starting of tasks: the rest of the room ends as if by tasks that did nothing.
void Shepherd::end_spawning() {
  if (is_room_closed_) return;
  spawner_.close();
  spawning_->lose("the tasks are ending");
  if (starting_) end_world("the tasks are ending");
  for (std::uint32_t task = 0; task < plan_->local_tasks(); ++task) tasks_->give_up(task, 0, 0);
  is_room_closed_ = true;
  if (tasks_->all_ended() && phase_ == Phase::Running) drain();
}

}  // namespace score::shepherd
