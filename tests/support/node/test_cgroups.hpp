// Provides tests with two cgroups of their own, and waits for asynchronous effects of the kernel.
#pragma once

#include "base/os/cgroup.hpp"
#include "scored/node/kernel/switch_target.hpp"

#include <functional>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace score::node {

// Returns false after ten seconds.
inline bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 10'000; ++i) {
    if (holds()) return true;
    poll(nullptr, 0, 1);
  }
  return false;
}

// The destructor kills all processes in the cgroups and waits for every child of this process.
class CgroupPair {
 public:
  CgroupPair() {
    const auto own = own_cgroup();
    if (!own) return;
    root_ = *own + "/scored-switcher-test-" + std::to_string(getpid());
    if (!Cgroup::create(root_)) return;
    for (const char* name : {"/one", "/two"}) {
      if (auto made = Cgroup::create(root_ + name)) cgroups_.push_back(*std::move(made));
    }
  }

  CgroupPair(const CgroupPair&) = delete;
  CgroupPair& operator=(const CgroupPair&) = delete;

  ~CgroupPair() {
    for (auto& cgroup : cgroups_) {
      [[maybe_unused]] auto thawed = cgroup.freeze(false);
      [[maybe_unused]] auto killed = cgroup.kill();
    }
    while (waitpid(-1, nullptr, 0) > 0) {
    }
    eventually([this] { return remove_cgroup_tree(root_).has_value(); });
  }

  [[nodiscard]] bool is_made() const { return cgroups_.size() == 2; }

  Cgroup& operator[](std::size_t i) { return cgroups_[i]; }

  std::unique_ptr<SwitchTarget> target(std::size_t i) {
    return CgroupFreeze::open(cgroups_[i].path()).value();
  }

 private:
  std::string root_;
  std::vector<Cgroup> cgroups_;
};

}  // namespace score::node
