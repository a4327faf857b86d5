// These tests create their own files and processes, in their own directory.
#include "scored/job/tasks/abandoned_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <filesystem>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::shepherd {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBytes = 4096;

enum class Use { Open, Mapped, Hidden };

class AbandonedMemory : public testing::Test {
 protected:
  AbandonedMemory() {
    std::string name = "/dev/shm/score-test-XXXXXX";
    directory_ = mkdtemp(name.data());
  }

  ~AbandonedMemory() override {
    for (const pid_t pid : children_) end(pid);
    std::filesystem::remove_all(directory_);
  }

  void make(const std::string& name) const {
    const int file = open((directory_ + "/" + name).c_str(), O_CREAT | O_RDWR | O_EXCL, 0600);
    EXPECT_EQ(ftruncate(file, kBytes), 0);
    close(file);
  }

  // Starts a process that uses the file in this way, and in no other, until end().
  pid_t user_of(const std::string& name, Use use) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe2(ready.data(), O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) hold(name, use, ready[1]);
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    children_.push_back(pid);
    return pid;
  }

  [[noreturn]] void hold(const std::string& name, Use use, int ready) const {
    const int file = open((directory_ + "/" + name).c_str(), O_RDWR);
    if (use != Use::Open) {
      void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      *static_cast<volatile char*>(at) = 1;
      close(file);
    }
    if (use == Use::Hidden) prctl(PR_SET_DUMPABLE, 0);
    if (write(ready, "", 1) == 1) pause();
    _exit(1);
  }

  static void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  std::vector<std::string> remove() const {
    auto names = remove_abandoned_memory(directory_, since_);
    std::ranges::sort(names);
    return names;
  }

  std::string directory_;
  base::WallTime since_ = base::wall_now() - 1s;
  std::vector<pid_t> children_;
};

using Names = std::vector<std::string>;

TEST_F(AbandonedMemory, RemovesLeftoversOfMpiLibraries) {
  const Names names{"mpich_shar_tmpAb3dEf", "osc_sm.n.1.2.3", "sm_segment.n.0.1.2",
                    "ucx_shm_posix_5f3", "vader_segment.n.0.1.2"};
  for (const auto& name : names) make(name);
  EXPECT_EQ(remove(), names);
  EXPECT_EQ(remove(), Names{});
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(AbandonedMemory, KeepsFilesInUse) {
  make("mpich_shm_1_0");
  make("mpich_shm_2_0");
  const pid_t first = user_of("mpich_shm_1_0", Use::Open);
  const pid_t second = user_of("mpich_shm_2_0", Use::Mapped);
  EXPECT_EQ(remove(), Names{});
  end(first);
  EXPECT_EQ(remove(), Names{"mpich_shm_1_0"});
  end(second);
  EXPECT_EQ(remove(), Names{"mpich_shm_2_0"});
  children_.clear();
}

TEST_F(AbandonedMemory, KeepsFileOfProcessThatHidesItsUse) {
  make("mpich_shm_3_0");
  make("mpich_shm_3_1");
  user_of("mpich_shm_3_0", Use::Hidden);
  EXPECT_EQ(remove(), Names{"mpich_shm_3_1"});
}

// A job that may be saved runs in such a namespace, and its shepherd too.
TEST_F(AbandonedMemory, KeepsFilesUsedInOtherNamespaces) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  make("mpich_shm_8_0");
  make("mpich_shm_8_1");
  user_of("mpich_shm_8_0", Use::Open);
  const pid_t outer = fork();
  if (outer == 0) {
    if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) _exit(99);
    const pid_t inner = fork();
    if (inner == 0) {
      const bool is_ready = mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                            mount("proc", "/proc", "proc", 0, nullptr) == 0;
      _exit(is_ready ? static_cast<int>(remove().size()) : 99);
    }
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  int status = 0;
  waitpid(outer, &status, 0);
  if (WEXITSTATUS(status) == 99) GTEST_SKIP() << "cannot make a PID namespace here";
  EXPECT_EQ(WEXITSTATUS(status), 1) << "only the unused file is removed";
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/mpich_shm_8_0"));
}

// Its creator may still be inside of open().
TEST_F(AbandonedMemory, KeepsEmptyFiles) {
  make("mpich_shm_9_0");
  std::filesystem::resize_file(directory_ + "/mpich_shm_9_0", 0);
  EXPECT_EQ(remove(), Names{});
}

TEST_F(AbandonedMemory, KeepsFilesOfOtherNamesKindsAndTimes) {
  make("results.bin");
  std::filesystem::create_directory(directory_ + "/mpich_shm_4_0");
  std::filesystem::create_symlink("results.bin", directory_ + "/mpich_shm_5_0");
  EXPECT_EQ(remove(), Names{});
  make("mpich_shm_6_0");
  since_ = base::wall_now() + 1h;
  EXPECT_EQ(remove(), Names{});
}

TEST_F(AbandonedMemory, KeepsFilesOfOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  make("mpich_shm_7_0");
  ASSERT_EQ(chown((directory_ + "/mpich_shm_7_0").c_str(), 12345, 12345), 0);
  EXPECT_EQ(remove(), Names{});
}

TEST_F(AbandonedMemory, TreatsAMissingDirectoryAsEmpty) {
  EXPECT_EQ(remove_abandoned_memory(directory_ + "/none", since_), Names{});
}

}  // namespace
}  // namespace score::shepherd
