#pragma once
// Fakes of base/os.hpp for tests: public records of what was called, and a budget of calls after
// which everything fails. Repeat a flow with fail_after = 0, 1, 2 ... until it succeeds; each time
// an error must come back and nothing may be left in `processes` or `groups`.

#include "base/os.hpp"

#include <cerrno>
#include <csignal>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace score::inline base {

// Counts calls over all fakes that share it.
struct FailAfter {
  std::size_t calls = std::numeric_limits<std::size_t>::max();

  // The error of this call, if its turn has come.
  Status step(std::string_view what) {
    if (calls == 0) return fail(errno_code(EIO), "{}", what);
    --calls;
    return {};
  }
};

class FakeProcesses final : public Processes {
 public:
  explicit FakeProcesses(FailAfter& budget) : budget_(budget) {}

  // "Pidfds" are read ends of pipes; the process ends when end() is called or it is signalled.
  struct Process {
    SpawnSpec spec;
    UniqueFd end_of_life;  // closing it makes the pidfd readable
    std::optional<ExitStatus> status;
    std::vector<int> signals;
  };

  std::map<int, Process> processes;  // by number of the pidfd given out

  std::expected<SpawnedProcess, SpawnFailure> spawn(const SpawnSpec& spec) override {
    if (auto good = budget_.step("fork"); !good) {
      return std::unexpected(SpawnFailure{.step = SpawnStep::Fork, .error = good.error()});
    }
    auto pipe = make_pipe();
    if (!pipe) return std::unexpected(SpawnFailure{SpawnStep::Fork, pipe.error()});
    const int pidfd = pipe->read.get();
    Process process{
        .spec = spec, .end_of_life = std::move(pipe->write), .status = {}, .signals = {}};
    processes[pidfd] = std::move(process);
    return SpawnedProcess{.pid = next_pid_++, .pidfd = std::move(pipe->read)};
  }

  Status send_signal(int pidfd, int signal) override {
    if (auto good = budget_.step("signal"); !good) return good;
    const auto found = processes.find(pidfd);
    if (found == processes.end() || found->second.status) {
      return fail(errno_code(ESRCH), "send signal {}", signal);
    }
    found->second.signals.push_back(signal);
    if (signal == SIGKILL || signal == SIGTERM) end(pidfd, {.code = 0, .signal = signal});
    return {};
  }

  Result<std::optional<ExitStatus>> reap(int pidfd, bool /*block*/) override {
    const auto found = processes.find(pidfd);
    if (found == processes.end()) return fail(errno_code(ECHILD), "wait for process");
    auto status = found->second.status;
    if (status) processes.erase(found);
    return status;
  }

  void end(int pidfd, ExitStatus status) {
    processes[pidfd].status = status;
    processes[pidfd].end_of_life.reset();
  }

 private:
  FailAfter& budget_;
  pid_t next_pid_ = 1000;
};

class FakeCgroupFiles final : public CgroupFiles {
 public:
  explicit FakeCgroupFiles(FailAfter& budget) : budget_(budget) {}

  struct Group {
    CgroupEvents events;
    std::map<std::string, std::string, std::less<>> files;
  };

  std::map<std::string, Group> groups;
  std::vector<std::string> calls;  // "freeze /a", "thaw /a", "kill /a" ...

  Status create(const std::string& path) override {
    if (auto good = note("create", path); !good) return good;
    groups.try_emplace(path);
    return {};
  }

  Status remove(const std::string& path) override {
    if (auto good = note("remove", path); !good) return good;
    const auto found = groups.find(path);
    if (found == groups.end()) return {};
    if (found->second.events.populated) return fail(errno_code(EBUSY), "remove cgroup {}", path);
    groups.erase(found);
    return {};
  }

  Status freeze(const std::string& path, bool on) override {
    return change(on ? "freeze" : "thaw", path, [on](Group& group) { group.events.frozen = on; });
  }

  Status kill(const std::string& path) override {
    return change("kill", path, [](Group& group) { group.events.populated = false; });
  }

  Status write(const std::string& path, std::string_view file, std::string_view text) override {
    return change("write", path, [&](Group& group) { group.files[std::string(file)] = text; });
  }

  Result<CgroupEvents> events(const std::string& path) override {
    const auto found = groups.find(path);
    if (found == groups.end()) return fail(errno_code(ENOENT), "open {}", path);
    return found->second.events;
  }

 private:
  Status note(std::string_view verb, const std::string& path) {
    calls.push_back(fmt::format("{} {}", verb, path));
    return budget_.step(calls.back());
  }

  template <typename Action>
  Status change(std::string_view verb, const std::string& path, Action action) {
    if (auto good = note(verb, path); !good) return good;
    const auto found = groups.find(path);
    if (found == groups.end()) return fail(errno_code(ENOENT), "{} {}", verb, path);
    action(found->second);
    return {};
  }

  FailAfter& budget_;
};

class FakeHost final : public Host {
 public:
  HostFacts value;

  Result<HostFacts> facts() override { return value; }
};

}  // namespace score::inline base
