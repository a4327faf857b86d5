#pragma once
// Runs scored-stacks for a shepherd, at most one at a time. It is killed at its time limit, when
// the shepherd ends, and when another request comes.

#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/result.hpp"
#include "proto/stacks.pb.h"
#include "scored/job/tasks/event_loop.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <sys/types.h>

namespace score::shepherd {

class StackQuery {
 public:
  struct Task {
    std::uint32_t rank = 0;
    pid_t process = 0;
  };

  using Answer = std::function<void(const wire::ShepherdStacksRead&)>;

  // The loop must outlive the query. `program` is the path of scored-stacks.
  StackQuery(EventLoop& loop, Answer answer, std::string program = program_path());
  ~StackQuery();
  StackQuery(const StackQuery&) = delete;
  StackQuery& operator=(const StackQuery&) = delete;

  // Is answered once, also if it fails.
  void begin(const wire::ShepherdStacks& request, std::span<const Task> tasks);

  static std::string program_path();

 private:
  base::Status start(const wire::ShepherdStacks& request, std::span<const Task> tasks);
  void on_output();
  void end(const std::string& reason);

  EventLoop& loop_;
  Answer answer_;
  std::string program_;
  std::uint64_t tag_ = 0;  // 0: none runs
  base::SpawnedProcess reader_;
  base::UniqueFd output_;
  EventLoop::TimerId timer_ = 0;
  std::string read_;
};

// scored-stacks writes a head of this many hexadecimal digits, which is the size of the tree.
inline constexpr std::size_t kStackSizeDigits = 8;

}  // namespace score::shepherd
