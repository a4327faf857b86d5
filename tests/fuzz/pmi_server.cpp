// This fuzz target tests a node's PMI server against hostile tasks and fences. The input is a list
// of records: a byte whose low bits select the sender (two tasks, the head, a task's end or the
// answer of a spawn), a length byte, and that many bytes.
//
// These rules must always hold: replies are whole lines to existing tasks, a fence is sent only
// when both tasks wait, and a task's replies stay in proportion to its requests.

#include "scored/job/pmi/pmi_server.hpp"

#include "base/assert.hpp"
#include "proto/frames/key_values.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace {

using score::shepherd::PmiActions;
using score::shepherd::PmiServer;

constexpr std::uint32_t kTasks = 2;

void check(const PmiActions& actions) {
  for (const auto& reply : actions.replies) {
    SCORE_ASSERT(reply.task < kTasks && reply.bytes.starts_with("cmd="));
    SCORE_ASSERT(std::ranges::count(reply.bytes, '\n') == 1 && reply.bytes.ends_with('\n'));
    SCORE_ASSERT(reply.bytes.size() < 1024, "the client reads 1023 bytes");
  }
  for (const auto& spawn : actions.spawns) {
    SCORE_ASSERT(spawn.task < kTasks && !spawn.what.programs.empty());
    for (const auto& program : spawn.what.programs) {
      SCORE_ASSERT(program.tasks() > 0 && !program.argv(0).empty(), "a spawn of nothing");
    }
    SCORE_ASSERT(score::proto::parse_key_values(spawn.what.key_values).has_value());
  }
  for (const auto& name : actions.names) {
    SCORE_ASSERT(name.task < kTasks && !name.service.empty());
  }
  for (const auto task : actions.closed) SCORE_ASSERT(task < kTasks);
  for (const auto& abort : actions.aborts) SCORE_ASSERT(abort.task < kTasks);
  if (actions.fence) {
    SCORE_ASSERT(score::proto::parse_key_values(actions.fence->key_values).has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  PmiServer server({.name = "kvs_1",
                    .size = 4,
                    .local_tasks = kTasks,
                    .process_mapping = "(vector,(0,2,2))",
                    .can_spawn = true});
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 2) {
    const auto who = static_cast<unsigned>(rest[0]) & 3U;
    const std::size_t length = static_cast<unsigned char>(rest[1]);
    const auto bytes = rest.substr(2, length);
    rest.remove_prefix(2 + bytes.size());
    if (who < kTasks) {
      check(server.receive(who, bytes));
    } else if (who == 2) {
      const auto sequence = server.pending_fence() ? server.pending_fence()->sequence : 1;
      if (auto actions = server.fence_done(sequence, bytes)) check(*actions);
    } else if (length % 8 >= 4) {
      check(server.spawn_done(static_cast<std::uint32_t>(length % kTasks), length >= 128));
      check(server.name_done(static_cast<std::uint32_t>(length % kTasks), true, bytes));
    } else {
      check(server.task_ended(static_cast<std::uint32_t>(length % kTasks), length >= 128));
    }
  }
  return 0;
}
