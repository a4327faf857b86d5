#pragma once
// Three narrow seams to the operating system: processes, cgroup files, host facts. Flows take the
// interface, so that a test can make the Nth call fail; base/os_fake.hpp has the fakes. Each method
// is the function of the same name in spawn.hpp, cgroup.hpp or host_facts.hpp; see there.
// Asio-free.

#include "base/cgroup.hpp"
#include "base/host_facts.hpp"
#include "base/spawn.hpp"

namespace score::inline base {

class Processes {
 public:
  virtual ~Processes() = default;
  virtual std::expected<SpawnedProcess, SpawnFailure> spawn(const SpawnSpec& spec) = 0;
  virtual Status send_signal(int pidfd, int signal) = 0;
  virtual Result<std::optional<ExitStatus>> reap(int pidfd, bool block) = 0;
};

// By path; the real one opens files at each call. The switcher keeps Cgroup objects instead.
class CgroupFiles {
 public:
  virtual ~CgroupFiles() = default;
  virtual Status create(const std::string& path) = 0;
  // With everything below; nothing may live in it.
  virtual Status remove(const std::string& path) = 0;
  virtual Status freeze(const std::string& path, bool on) = 0;
  virtual Status kill(const std::string& path) = 0;
  virtual Status write(const std::string& path, std::string_view file, std::string_view text) = 0;
  virtual Result<CgroupEvents> events(const std::string& path) = 0;
};

class Host {
 public:
  virtual ~Host() = default;
  virtual Result<HostFacts> facts() = 0;
};

class RealProcesses final : public Processes {
 public:
  std::expected<SpawnedProcess, SpawnFailure> spawn(const SpawnSpec& spec) override;
  Status send_signal(int pidfd, int signal) override;
  Result<std::optional<ExitStatus>> reap(int pidfd, bool block) override;
};

class RealCgroupFiles final : public CgroupFiles {
 public:
  Status create(const std::string& path) override;
  Status remove(const std::string& path) override;
  Status freeze(const std::string& path, bool on) override;
  Status kill(const std::string& path) override;
  Status write(const std::string& path, std::string_view file, std::string_view text) override;
  Result<CgroupEvents> events(const std::string& path) override;
};

class RealHost final : public Host {
 public:
  Result<HostFacts> facts() override;
};

}  // namespace score::inline base
