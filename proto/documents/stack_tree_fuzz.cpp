// This fuzz target, tested by its corpus, merges trees of stacks, as nodes and the head do with
// those of users' programs. What a tree makes of an accepted one is accepted again, and stays the
// same.

#include "base/assert.hpp"
#include "proto/documents/stack_tree.hpp"
#include "proto/frames/parse.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace proto = score::proto;
  constexpr std::uint32_t kTasks = 64;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto message = proto::parse<score::wire::StackTree>(bytes, "StackTree");
  if (!message) return 0;
  proto::StackTree first, second;
  if (!first.merge(*message, kTasks, kTasks)) return 0;
  const auto once = first.to_wire(proto::StackTree::kMaxJobBytes);
  SCORE_ASSERT(second.merge(once, kTasks, kTasks).has_value(), "a tree that was sent is refused");
  const auto again = second.to_wire(proto::StackTree::kMaxJobBytes);
  SCORE_ASSERT(again.SerializeAsString() == once.SerializeAsString(), "a tree has changed");
  return 0;
}
