// These tests run the real launcher, with a script as the shepherd and this process as the node
// daemon.
#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"
#include "scored/privileged/launcher/protocol.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <poll.h>
#include <random>
#include <set>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::launcher {
namespace {

namespace fs = std::filesystem;

// This script writes down its own properties and then waits for its end.
constexpr const char* kShepherdScript = R"sh(#!/bin/sh
here=$(dirname "$0")
if [ "$1" = shepherd ]; then (setsid sleep 1000 & echo $! > "$here/stray"); fi
{
  echo "uid $(id -u)"
  echo "environment $(tr '\0' '\n' < /proc/$$/environ | cut -d= -f1 | sort | tr '\n' ' ')"
  echo "cgroup $(grep ^0:: /proc/$$/cgroup)"
} > "$here/$1.new"
mv "$here/$1.new" "$here/$1"
exec sleep 1000
)sh";

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 2'000; ++i) {
    if (holds()) return true;
    usleep(5'000);
  }
  return false;
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto end = line.rfind(')');
  return end == std::string::npos ? '-' : line[end + 2];
}

bool is_gone(pid_t pid) {
  return state_of(pid) == '-' || state_of(pid) == 'Z';
}

// Returns the descriptors in order, once the script has become `sleep`; the shell had some of its
// own.
std::string descriptors(pid_t pid) {
  std::set<int> numbers;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone)) {
    numbers.insert(std::stoi(entry.path().filename()));
  }
  std::string text;
  for (const int number : numbers) text += std::to_string(number) + " ";
  return text;
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

class LauncherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "scored-launcher-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    fs::permissions(dir_, fs::perms::all);  // the script writes as a different user
    run_ = dir_ / "run";
    fs::create_directory(run_);
    fs::permissions(run_, fs::perms(0755));
    std::ofstream(dir_ / "shepherd.sh") << kShepherdScript;
    fs::permissions(dir_ / "shepherd.sh", fs::perms(0755));
  }

  void TearDown() override {
    for (const pid_t pid : started_) kill(pid, SIGKILL);
    if (launcher_ > 0) {
      // The launcher removes what the dead shepherds left, so it must not end before that.
      for (const pid_t pid : started_) eventually([pid] { return is_gone(pid); });
      const pid_t stray = stray_pid();
      if (stray > 0) eventually([stray] { return is_gone(stray); });
      kill(launcher_, SIGKILL);
      waitpid(launcher_, nullptr, 0);
    }
    if (!cgroup_root_.empty()) {
      eventually([this] { return remove_cgroup_tree(cgroup_root_).has_value(); });
    }
    // A shepherd that has just been started may still write there.
    eventually([this] {
      std::error_code error;
      fs::remove_all(dir_, error);
      return !error;
    });
  }

  pid_t stray_pid() const {
    std::ifstream file(dir_ / "stray");
    pid_t pid = 0;
    file >> pid;
    return pid;
  }

  void start_launcher(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {LAUNCHER_PROGRAM, "--rundir", run_.string(), "--shepherd",
                                      (dir_ / "shepherd.sh").string()};
    words.insert(words.begin(), without_.begin(), without_.end());
    words.insert(words.end(), more.begin(), more.end());
    launcher_ = fork();
    if (launcher_ == 0) {
      std::vector<char*> argv;
      for (auto& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      const int log = open((dir_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      dup2(log, 2);
      if (preloaded_ != nullptr) setenv("LD_PRELOAD", preloaded_, 1);
      execv(argv[0], argv.data());
      _exit(127);
    }
    ASSERT_TRUE(eventually([this] { return fs::exists(run_ / "launcher.sock"); }));
    ASSERT_TRUE(eventually([this] { return connect_daemon(); }));
  }

  bool connect_daemon() {
    daemon_ = UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto address = address_of((run_ / "launcher.sock").string());
    return connect(daemon_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }

  UniqueFd listening_socket() const {
    UniqueFd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un unnamed{};  // the kernel chooses a name
    unnamed.sun_family = AF_UNIX;
    bind(made.get(), reinterpret_cast<const sockaddr*>(&unnamed), sizeof unnamed.sun_family);
    listen(made.get(), 1);
    return made;
  }

  void send_bytes(const void* data, std::size_t size, std::vector<int> fds = {}) {
    const auto* bytes = static_cast<const std::byte*>(data);
    [[maybe_unused]] auto sent = send_with_fds(daemon_.get(), {bytes, size}, fds);
  }

  StartReply ask(const StartRequest& request, std::vector<int> fds) {
    send_bytes(&request, sizeof request, std::move(fds));
    StartReply reply;
    reply.error = 9999;
    pollfd ready{.fd = daemon_.get(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, 10'000) == 1) {
      [[maybe_unused]] const ssize_t got = recv(daemon_.get(), &reply, sizeof reply, 0);
    }
    if (reply.error == 0) started_.push_back(reply.shepherd_pid);
    return reply;
  }

  StartReply launch(std::uint64_t attempt, std::uint32_t user, std::vector<int> cgroups = {}) {
    const UniqueFd listener = listening_socket();
    StartRequest request;
    request.attempt = attempt;
    request.user = user;
    cgroups.insert(cgroups.begin(), listener.get());
    return ask(request, cgroups);
  }

  // Makes the directories of an attempt, as the node daemon does.
  std::vector<UniqueFd> make_cgroups(std::uint64_t attempt) {
    std::vector<UniqueFd> places;
    const std::string job = cgroup_root_ + "/job_" + std::to_string(attempt);
    EXPECT_TRUE(Cgroup::create(job));
    for (const char* below : {"/shepherd", "/tasks", "/helpers"}) {
      EXPECT_TRUE(Cgroup::create(job + below));
      places.emplace_back(open((job + below).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    return places;
  }

  bool closed_by_launcher() const {
    pollfd ready{.fd = daemon_.get(), .events = POLLIN, .revents = 0};
    char byte = 0;
    return poll(&ready, 1, 10'000) == 1 && recv(daemon_.get(), &byte, 1, MSG_DONTWAIT) <= 0;
  }

  void expect_alive() {
    ASSERT_TRUE(eventually([this] { return connect_daemon(); }));
    EXPECT_EQ(launch(99, own_user()).error, 0U);
    EXPECT_EQ(waitpid(launcher_, nullptr, WNOHANG), 0);
  }

  std::string fact(const std::string& role, const std::string& name) const {
    EXPECT_TRUE(eventually([&] { return fs::exists(dir_ / role); }));
    std::ifstream file(dir_ / role);
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(name + " ")) return line.substr(name.size() + 1);
    }
    return "missing";
  }

  std::string log() const {
    std::ifstream file(dir_ / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static std::uint32_t own_user() { return geteuid(); }

  // Returns the options for jobs of the test's own user if that is root.
  static std::vector<std::string> allow() {
    if (geteuid() != 0) return {};
    return {"--allow-uid", "0"};
  }

  bool make_cgroup_root() {
    const auto own = own_cgroup();
    if (!own) return false;
    cgroup_root_ = *own + "/" + dir_.filename().string();
    if (Cgroup::create(cgroup_root_)) return true;
    cgroup_root_.clear();
    return false;
  }

  fs::path dir_;
  const char* preloaded_ = nullptr;   // a library to preload into the launcher
  std::vector<std::string> without_;  // the words of without_calls; empty: all calls work
  fs::path run_;                      // directory of the launcher's socket
  std::string cgroup_root_;
  pid_t launcher_ = 0;
  UniqueFd daemon_;
  std::vector<pid_t> started_;
};

TEST_F(LauncherTest, StartsShepherdAndSpawner) {
  start_launcher(allow());
  const StartReply reply = launch(7, own_user());
  ASSERT_EQ(reply.error, 0U) << reply.step;
  EXPECT_EQ(reply.attempt, 7U);
  EXPECT_EQ(getsid(reply.shepherd_pid), reply.shepherd_pid);
  EXPECT_EQ(getpgid(reply.group), reply.group);
  EXPECT_EQ(getsid(reply.group), reply.group);
  EXPECT_TRUE(eventually([&] { return descriptors(reply.shepherd_pid) == "0 1 2 3 4 "; }));
  EXPECT_TRUE(eventually([&] { return descriptors(reply.group) == "0 1 2 4 "; }))
      << descriptors(reply.group);
}

TEST_F(LauncherTest, BuildsTheEnvironmentFromNothing) {
  setenv("SCORE_SECRET", "x", 1);
  start_launcher(allow());
  ASSERT_EQ(launch(7, own_user()).error, 0U);
  EXPECT_EQ(fact("shepherd", "environment"), "HOME LOGNAME PATH SHELL USER ");
  EXPECT_EQ(fact("spawner", "environment"), "HOME LOGNAME PATH SHELL USER ");
}

TEST_F(LauncherTest, DropsToTheUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start another user's job";
  start_launcher();
  ASSERT_EQ(launch(7, 65534).error, 0U);
  EXPECT_EQ(fact("shepherd", "uid"), "65534");
  EXPECT_EQ(fact("spawner", "uid"), "65534");
}

TEST_F(LauncherTest, RefusesRootsJobsUnlessAllowed) {
  start_launcher();
  EXPECT_EQ(launch(7, 0).error, static_cast<std::uint32_t>(EPERM));
}

TEST_F(LauncherTest, ReportsMissingHelper) {
  start_launcher(allow());
  const UniqueFd listener = listening_socket();
  StartRequest request;
  request.attempt = 7;
  request.user = own_user();
  request.scratch = 1;
  const StartReply reply = ask(request, {listener.get()});
  EXPECT_EQ(reply.error, static_cast<std::uint32_t>(ENOENT));
  EXPECT_STREQ(reply.step, "scored-scratch-directory");
}

TEST_F(LauncherTest, StartsHelpersInTheirCgroup) {
  if (!make_cgroup_root()) GTEST_SKIP() << "no cgroup2 that may be written";
  std::ofstream(dir_ / "scored-scratch-directory") << "#!/bin/sh\n";
  fs::permissions(dir_ / "scored-scratch-directory", fs::perms(0755));
  const auto places = make_cgroups(7);
  start_launcher(allow());
  const UniqueFd listener = listening_socket();
  StartRequest request;
  request.attempt = 7;
  request.user = own_user();
  request.scratch = 1;
  const StartReply reply =
      ask(request, {listener.get(), places[0].get(), places[1].get(), places[2].get()});
  ASSERT_EQ(reply.error, 0U) << reply.step;
  EXPECT_TRUE(fact("spawner", "cgroup").ends_with("/job_7/tasks"));
  EXPECT_TRUE(fact("helpers", "cgroup").ends_with("/job_7/helpers"));
  EXPECT_TRUE(eventually([&] { return descriptors(reply.shepherd_pid) == "0 1 2 3 4 5 "; }));
  EXPECT_EQ(getpgid(reply.group), reply.group);
}

TEST_F(LauncherTest, RefusesAnUnknownUser) {
  if (geteuid() != 0) GTEST_SKIP() << "a different user is refused before the look-up";
  start_launcher();
  EXPECT_EQ(launch(7, 3'999'999'999).error, static_cast<std::uint32_t>(ENOENT));
}

TEST_F(LauncherTest, RefusesTheSameAttemptTwice) {
  start_launcher(allow());
  ASSERT_EQ(launch(7, own_user()).error, 0U);
  EXPECT_EQ(launch(7, own_user()).error, static_cast<std::uint32_t>(EEXIST));
}

TEST_F(LauncherTest, RefusesADescriptorThatDoesNotListen) {
  start_launcher(allow());
  const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  StartRequest request;
  request.attempt = 7;
  request.user = own_user();
  EXPECT_EQ(ask(request, {file.get()}).error, static_cast<std::uint32_t>(ENOTSOCK));
  EXPECT_EQ(ask(request, {}).error, static_cast<std::uint32_t>(ENOTSOCK));
}

TEST_F(LauncherTest, ReportsFailureAndLeavesNothing) {
  start_launcher(allow());
  fs::remove(dir_ / "shepherd.sh");
  const StartReply reply = launch(7, own_user());
  EXPECT_EQ(reply.error, static_cast<std::uint32_t>(ENOENT));
  EXPECT_STREQ(reply.step, "exec the shepherd");
  const std::string children =
      "/proc/" + std::to_string(launcher_) + "/task/" + std::to_string(launcher_) + "/children";
  EXPECT_TRUE(eventually([&] {
    std::ifstream file(children);
    std::string pid;
    return !(file >> pid);
  }));
}

TEST_F(LauncherTest, SurvivesMalformedPackets) {
  start_launcher(allow());
  const auto refuses = [this](const void* data, std::size_t size, std::vector<int> fds = {}) {
    ASSERT_TRUE(eventually([this] { return connect_daemon(); }));
    send_bytes(data, size, std::move(fds));
    EXPECT_TRUE(closed_by_launcher());
  };
  StartRequest request;
  request.magic ^= 1;
  refuses(&request, sizeof request);
  const std::string sender = fmt::format(" pid={} uid={} ", getpid(), own_user());
  EXPECT_TRUE(eventually([&] { return log().find(sender) != std::string::npos; })) << log();
  request = {};
  request.version = 77;
  refuses(&request, sizeof request);
  request = {};
  refuses(&request, sizeof request - 1);
  std::array<char, 100'000> large{};
  refuses(large.data(), large.size());
  const UniqueFd listener = listening_socket();
  refuses(&request, sizeof request, std::vector<int>(kPlaces + 1, listener.get()));
  refuses(&request, sizeof request, std::vector<int>(12, listener.get()));
  expect_alive();
}

TEST_F(LauncherTest, SurvivesRandomBytes) {
  start_launcher(allow());
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(eventually([this] { return connect_daemon(); }));
    std::array<std::uint8_t, 64> bytes{};
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    if (i % 2 == 0) std::memcpy(bytes.data(), &kMagic, sizeof kMagic);
    const std::size_t size = 1 + random() % bytes.size();
    send(daemon_.get(), bytes.data(), size, MSG_NOSIGNAL);
  }
  expect_alive();
}

TEST_F(LauncherTest, NeverReadsPacketsOfOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be a different user";
  start_launcher(allow());
  daemon_.reset();
  fs::permissions(run_ / "launcher.sock", fs::perms(0666));
  const pid_t stranger = fork();
  if (stranger == 0) {
    if (setresuid(65534, 65534, 65534) != 0 || !connect_daemon()) _exit(3);
    _exit(launch(8, 65534).error == 9999 || closed_by_launcher() ? 0 : 4);
  }
  int status = 0;
  waitpid(stranger, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fs::exists(dir_ / "shepherd"));
  expect_alive();
}

TEST_F(LauncherTest, StartsBothInTheCgroupsItIsGiven) {
  if (!make_cgroup_root()) GTEST_SKIP() << "no cgroup2 that may be written";
  const auto places = make_cgroups(7);
  start_launcher(allow());
  const StartReply reply =
      launch(7, own_user(), {places[0].get(), places[1].get(), places[2].get()});
  ASSERT_EQ(reply.error, 0U) << reply.step;
  EXPECT_TRUE(fact("shepherd", "cgroup").ends_with("/job_7/shepherd"));
  EXPECT_TRUE(fact("spawner", "cgroup").ends_with("/job_7/tasks"));
}

// Profiles of containers refuse calls with either error.
TEST_F(LauncherTest, ChildrenJoinTheirCgroupsWithoutClone3) {
  if (!make_cgroup_root()) GTEST_SKIP() << "no cgroup2 that may be written";
  for (const char* error : {"ENOSYS", "EPERM"}) {
    without_ = {WITHOUT_CALLS, "--error", error, "clone3", "close_range", "pidfd", "--"};
    const auto attempt = started_.size() + 7;
    const auto places = make_cgroups(attempt);
    ASSERT_NO_FATAL_FAILURE(start_launcher(allow()));
    const StartReply reply =
        launch(attempt, own_user(), {places[0].get(), places[1].get(), places[2].get()});
    ASSERT_EQ(reply.error, 0U) << reply.step;
    const std::string job = "/job_" + std::to_string(attempt);
    EXPECT_TRUE(fact("shepherd", "cgroup").ends_with(job + "/shepherd"));
    EXPECT_TRUE(fact("spawner", "cgroup").ends_with(job + "/tasks"));
    EXPECT_TRUE(eventually([&] { return descriptors(reply.shepherd_pid) == "0 1 2 3 4 "; }));
    EXPECT_TRUE(eventually([&] { return descriptors(reply.group) == "0 1 2 4 "; }))
        << descriptors(reply.group);
    kill(reply.shepherd_pid, SIGKILL);
    EXPECT_TRUE(eventually([&] { return is_gone(reply.group) && is_gone(stray_pid()); }));
    kill(launcher_, SIGKILL);
    waitpid(launcher_, nullptr, 0);
    for (const char* made : {"shepherd", "spawner", "run/launcher.sock"}) fs::remove(dir_ / made);
  }
}

TEST_F(LauncherTest, ReportsACgroupThatCannotBeJoined) {
  if (geteuid() != 0 || !make_cgroup_root()) GTEST_SKIP() << "needs root and cgroup2";
  without_ = {WITHOUT_CALLS, "clone3", "--"};
  const auto places = make_cgroups(7);
  ASSERT_TRUE(remove_cgroup_tree(cgroup_root_ + "/job_7/tasks"));
  start_launcher(allow());
  const StartReply reply =
      launch(7, own_user(), {places[0].get(), places[1].get(), places[2].get()});
  EXPECT_EQ(reply.error, static_cast<std::uint32_t>(ENOENT));
  EXPECT_STREQ(reply.step, "join the cgroup");
}

TEST_F(LauncherTest, RefusesCgroupsOfOtherOwners) {
  start_launcher(allow());
  const UniqueFd directory(open(run_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto denied = static_cast<std::uint32_t>(EPERM);
  EXPECT_EQ(launch(7, own_user(), {directory.get(), directory.get()}).error, denied);
  EXPECT_EQ(launch(7, own_user(), {directory.get()}).error, denied);
  if (geteuid() != 0 || !make_cgroup_root()) GTEST_SKIP() << "needs root and cgroup2";
  const auto places = make_cgroups(7);
  ASSERT_EQ(fchownat(places[1].get(), "", 65534, 65534, AT_EMPTY_PATH), 0);
  EXPECT_EQ(launch(7, own_user(), {places[0].get(), places[1].get(), places[2].get()}).error,
            denied);
}

TEST_F(LauncherTest, RefusesDirectoryWritableByOthers) {
  run_ = dir_;
  // tidy: allow banned, the words are the test's own
  const int status = std::system((std::string(LAUNCHER_PROGRAM) + " --rundir " + dir_.string() +
                                  " --shepherd /bin/true 2>" + (dir_ / "log").string())
                                     .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(log().find("Others may write in rundir="), std::string::npos) << log();
  EXPECT_FALSE(fs::exists(dir_ / "launcher.sock"));
}

TEST_F(LauncherTest, RefusesUsersBelowMinimumUnlessAllowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start another user's job";
  start_launcher({"--allow-uid", "2", "--allow-uid", "3"});
  const auto denied = static_cast<std::uint32_t>(EPERM);
  for (const std::uint32_t user : {0U, 1U, 999U}) EXPECT_EQ(launch(7, user).error, denied) << user;
  EXPECT_EQ(launch(8, 2).error, 0U);
  EXPECT_EQ(launch(9, 3).error, 0U);
}

TEST_F(LauncherTest, DoesNotWaitForUserDatabase) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start another user's job";
  preloaded_ = SLOW_USERS;
  start_launcher(allow());
  const UniqueFd listener = listening_socket();
  StartRequest slow;
  slow.attempt = 7;
  slow.user = 65533;
  send_bytes(&slow, sizeof slow, {listener.get()});
  const StartReply other = launch(8, own_user());  // answered first
  EXPECT_EQ(other.attempt, 8U);
  EXPECT_EQ(other.error, 0U) << other.step;
  StartReply late;
  pollfd ready{.fd = daemon_.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(poll(&ready, 1, 60'000), 1);
  ASSERT_EQ(recv(daemon_.get(), &late, sizeof late, 0), static_cast<ssize_t>(sizeof late));
  EXPECT_EQ(late.attempt, 7U);
  EXPECT_EQ(late.error, static_cast<std::uint32_t>(ETIMEDOUT));
}

TEST_F(LauncherTest, ReadsMinimumUserFromOptions) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start another user's job";
  start_launcher({"--min-uid", "65534"});
  EXPECT_EQ(launch(7, 65533).error, static_cast<std::uint32_t>(EPERM));
  EXPECT_EQ(launch(8, 65534).error, 0U);
}

TEST_F(LauncherTest, KillsLeftoversOfDeadShepherd) {
  start_launcher(allow());
  const StartReply reply = launch(7, own_user());
  ASSERT_EQ(reply.error, 0U);
  fact("shepherd", "uid");
  const pid_t stray = stray_pid();
  ASSERT_GT(stray, 1);
  kill(reply.shepherd_pid, SIGKILL);
  EXPECT_TRUE(eventually([&] { return is_gone(stray); }));
  EXPECT_TRUE(eventually([&] { return is_gone(reply.group); }));
}

TEST_F(LauncherTest, RefusesToShareItsSocket) {
  start_launcher(allow());
  // tidy: allow banned, the words are the test's own
  const int status = std::system((std::string(LAUNCHER_PROGRAM) + " --rundir " + run_.string() +
                                  " --shepherd /bin/true 2>/dev/null")
                                     .c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(launch(7, own_user()).error, 0U);  // the first one still has the socket
}

// A child of the launcher holds the listening socket until it executes a program.
TEST_F(LauncherTest, StartsWhileOrphanHoldsOldSocket) {
  const auto path = (run_ / "launcher.sock").string();
  const auto address = address_of(path);
  const UniqueFd held(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(held.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(held.get(), 8), 0);

  struct stat before {};

  ASSERT_EQ(stat(path.c_str(), &before), 0);
  start_launcher(allow());
  ASSERT_TRUE(eventually([&] {
    struct stat now {};
    return stat(path.c_str(), &now) == 0 && now.st_ino != before.st_ino && connect_daemon();
  }));
  EXPECT_EQ(launch(7, own_user()).error, 0U);
}

}  // namespace
}  // namespace score::launcher
