#include "tests/support/job/test_node.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <signal.h>
#include <stdexcept>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::shepherd::test {

namespace {

using Clock = std::chrono::steady_clock;

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// Switches the effective user id to `user` while it exists; 0 means no switch.
class ActingAs {
 public:
  explicit ActingAs(uid_t user) : user_(user) {
    if (user_ != 0) expect(seteuid(user_) == 0, "seteuid");
  }

  ~ActingAs() {
    if (user_ != 0) std::ignore = seteuid(getuid());
  }

  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;

 private:
  uid_t user_;
};

// Does the last steps of the launcher's children.
[[noreturn]] void become(const char* mode, const TestNode::Options& options, int listener,
                         int spawner) {
  const int low = fcntl(spawner, F_DUPFD, 10);
  if (listener >= 0) dup2(fcntl(listener, F_DUPFD, 10), 3);
  if (listener < 0) ::close(3);
  dup2(low, 4);
  ::close(5);
  if (options.user != 0 && setresuid(options.user, options.user, options.user) != 0) _exit(99);
  std::array<char*, 1> environment{nullptr};
  std::string name = "scored-shepherd";
  std::string argument = mode;
  std::array<char*, 3> argv{name.data(), argument.data(), nullptr};
  execve(options.program.c_str(), argv.data(), environment.data());
  _exit(98);
}

}  // namespace

wire::LaunchSpec spec_of(std::vector<std::string> argv) {
  wire::LaunchSpec spec;
  spec.set_job(7);
  auto& program = *spec.add_programs();
  for (auto& argument : argv) program.add_argv(std::move(argument));
  spec.add_env("PATH=/usr/local/bin:/usr/bin:/bin");
  spec.add_env("HOME=/tmp");
  spec.set_directory("/tmp");
  spec.set_umask(022);
  return spec;
}

wire::LaunchSpec shell(const std::string& script) {
  return spec_of({"/bin/sh", "-c", script});
}

TestNode::TestNode(Options options) : daemon_(options.daemon) {
  if (options.program.empty()) {
    const char* program = std::getenv("SCORED_SHEPHERD");
    if (program == nullptr) throw std::runtime_error("SCORED_SHEPHERD is not set");
    options.program = program;
  }
  std::string name = "/tmp/shepherd_test.XXXXXX";
  expect(mkdtemp(name.data()) != nullptr, "mkdtemp");
  directory_ = name;
  chmod(name.c_str(), 0755);
  listener_ = base::UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = address_of(directory_ + "/s");
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  expect(bind(listener_.get(), generic, sizeof address) == 0, "bind");
  chmod((directory_ + "/s").c_str(),
        0777);  // so that the shepherd, not the kernel, rejects other users
  listen_as_daemon();
  launch(options);
  listener_.reset();
  if (options.connect) connect();
}

TestNode::~TestNode() {
  socket_.reset();
  if (shepherd_ > 0) {
    // On SIGTERM the shepherd also ends its tasks.
    kill(shepherd_, SIGTERM);
    if (!wait_ended()) {
      kill(shepherd_, SIGKILL);
      waitpid(shepherd_, nullptr, 0);
    }
  }
  unlink_socket();
  rmdir(directory_.c_str());
}

void TestNode::unlink_socket() {
  unlink((directory_ + "/s").c_str());
}

void TestNode::launch(const Options& options) {
  auto pair = base::make_socket_pair(SOCK_SEQPACKET);
  expect(pair.has_value(), "socketpair");
  shepherd_ = fork();
  if (shepherd_ != 0) return;
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (fork() == 0) {
    setsid();
    become("spawner", options, -1, pair->second.get());
  }
  become("shepherd", options, listener_.get(), pair->first.get());
}

void TestNode::listen_as_daemon() {
  const ActingAs daemon(daemon_);
  expect(listen(listener_.get(), 8) == 0, "listen");
}

void TestNode::connect() {
  const ActingAs daemon(daemon_);
  socket_ = base::UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = address_of(directory_ + "/s");
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  expect(::connect(socket_.get(), generic, sizeof address) == 0, "connect");
  reader_ = proto::FrameReader();
}

void TestNode::send_bytes(std::string_view bytes) {
  while (!bytes.empty() && socket_) {
    const ssize_t put = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put <= 0) return socket_.reset();
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

void TestNode::prepare(const wire::LaunchSpec& spec, const NodePlace& place) {
  wire::ShepherdPrepare message;
  message.set_attempt(spec.job() * 256 + 1);
  message.set_node_index(place.index);
  for (const auto tasks : place.tasks_on_node) message.add_tasks_on_node(tasks);
  message.set_distribution(static_cast<std::uint32_t>(place.distribution));
  message.set_restarts(place.restarts);
  message.set_spec(spec.SerializeAsString());
  message.set_node_name("node" + std::to_string(place.index));
  send(message);
}

void TestNode::signal(int number) {
  wire::SignalTasks message;
  message.set_signal(number);
  send(message);
}

void TestNode::input(std::string_view data, bool eof) {
  wire::TaskInput message;
  message.set_data(std::string(data));
  message.set_eof(eof);
  send(message);
}

void TestNode::take(std::uint64_t bytes) {
  wire::TaskOutputTaken message;
  message.set_bytes(bytes);
  send(message);
}

void TestNode::turn(const std::vector<TestNode*>& nodes, int timeout_ms) {
  std::vector<pollfd> waiting;
  for (TestNode* node : nodes) {
    waiting.push_back({.fd = node->socket_.get(), .events = POLLIN, .revents = 0});
  }
  poll(waiting.data(), waiting.size(), timeout_ms);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (waiting[i].revents != 0 && nodes[i]->socket_) nodes[i]->read_some();
  }
}

bool TestNode::wait(const std::function<bool()>& happened, std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (!happened()) {
    if (!socket_ || Clock::now() > deadline) return false;
    turn({this}, 20);
  }
  return true;
}

bool TestNode::run(const wire::LaunchSpec& spec, const NodePlace& place) {
  prepare(spec, place);
  if (!wait([this] { return ready || refused; }) || refused) return false;
  start();
  return wait([this] { return done.has_value(); });
}

bool TestNode::wait_ended() {
  if (shepherd_ <= 0) return true;
  const auto deadline = Clock::now() + std::chrono::seconds(120);
  while (Clock::now() < deadline) {
    if (waitpid(shepherd_, nullptr, WNOHANG) == shepherd_) {
      shepherd_ = 0;
      return true;
    }
    poll(nullptr, 0, 5);
  }
  return false;
}

void TestNode::read_some() {
  std::array<char, 65536> buffer;
  const ssize_t got = read(socket_.get(), buffer.data(), buffer.size());
  if (got <= 0) return socket_.reset();
  reader_.feed({buffer.data(), static_cast<std::size_t>(got)});
  while (socket_) {
    auto frame = reader_.next(proto::Role::Shepherd);
    expect(frame.has_value(), "frame");
    if (!*frame) return;
    on_frame(**frame);
  }
}

void TestNode::on_frame(const proto::InFrame& frame) {
  const auto into = [&](auto& target) {
    target.emplace();
    target->ParseFromString(frame.payload);
  };
  const auto onto = [&](auto& list) { list.emplace_back().ParseFromString(frame.payload); };
  switch (frame.type) {
    case proto::FrameType::ShepherdReady:
      return into(ready);
    case proto::FrameType::ShepherdRefused:
      return into(refused);
    case proto::FrameType::ShepherdStarted:
      return into(started);
    case proto::FrameType::ShepherdReport:
      return into(report);
    case proto::FrameType::ShepherdAbort:
      return into(abort);
    case proto::FrameType::ShepherdDone:
      return into(done);
    case proto::FrameType::FenceEnter:
      return onto(fences);
    case proto::FrameType::JobRelay:
      return onto(relays);
    case proto::FrameType::ShepherdTaskEnded: {
      wire::ShepherdTaskEnded message;
      message.ParseFromString(frame.payload);
      return ended.push_back(message.exit());
    }
    case proto::FrameType::TaskOutput: {
      wire::TaskOutput message;
      message.ParseFromString(frame.payload);
      return on_output(message);
    }
    case proto::FrameType::TaskInputTaken: {
      wire::TaskInputTaken message;
      message.ParseFromString(frame.payload);
      input_taken += message.bytes();
      return;
    }
    default:
      throw std::runtime_error("frame that a shepherd does not send");
  }
}

void TestNode::on_output(const wire::TaskOutput& output) {
  std::string_view data = output.data();
  if (takes_output) take(data.size());
  const auto known =
      std::min<std::uint64_t>(output_bytes - std::min(output_bytes, output.offset()), data.size());
  repeated_bytes += known;
  data.remove_prefix(static_cast<std::size_t>(known));
  output_bytes += data.size();
  auto& text = output.stream() == wire::STDOUT ? out[output.rank()] : err[output.rank()];
  if (keeps_output) text += data;
}

std::size_t TestNode::shepherd_rss_bytes() const {
  auto text = base::read_file("/proc/" + std::to_string(shepherd_) + "/statm", 4096);
  if (!text) return 0;
  const auto pages = std::strtoull(text->c_str() + text->find(' '), nullptr, 10);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

const wire::TaskExit* TestNode::exit_of(std::uint32_t rank) const {
  if (!done) return nullptr;
  for (const auto& exit : done->exits()) {
    if (exit.rank() == rank) return &exit;
  }
  return nullptr;
}

std::string TestNode::all_errors() const {
  std::string text;
  for (const auto& [rank, errors] : err) text += errors;
  return text;
}

TemporaryDirectory::TemporaryDirectory() {
  expect(mkdtemp(path_.data()) != nullptr, "mkdtemp");
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

TestCluster::TestCluster(std::vector<std::uint32_t> tasks_on_node)
    : tasks_on_node_(std::move(tasks_on_node)) {
  for (std::size_t i = 0; i < tasks_on_node_.size(); ++i) {
    nodes.push_back(std::make_unique<TestNode>());
  }
}

bool TestCluster::wait_all(const std::function<bool(TestNode&)>& done,
                           std::chrono::milliseconds time) {
  std::vector<TestNode*> all;
  for (auto& node : nodes) all.push_back(node.get());
  const auto deadline = Clock::now() + time;
  while (!std::ranges::all_of(nodes, [&](auto& node) { return done(*node); })) {
    if (Clock::now() > deadline) return false;
    TestNode::turn(all, 20);
    merge_fences();
    pass_relays();
    end_on_failure();
  }
  return true;
}

bool TestCluster::run(const wire::LaunchSpec& spec, std::chrono::milliseconds time) {
  const auto begin = Clock::now();
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    nodes[i]->prepare(spec, {.index = i, .tasks_on_node = tasks_on_node_});
  }
  if (!wait_all([](TestNode& node) { return node.ready || node.refused; }, time)) return false;
  if (std::ranges::any_of(nodes, [](auto& node) { return node->refused.has_value(); }))
    return false;
  const auto ready = Clock::now();
  for (auto& node : nodes) node->start();
  if (!wait_all([](TestNode& node) { return node.started || node.done; }, time)) return false;
  const auto started = Clock::now();
  if (!wait_all([](TestNode& node) { return node.done.has_value(); }, time)) return false;
  prepare_time = ready - begin;
  start_time = started - ready;
  run_time = Clock::now() - started;
  return true;
}

void TestCluster::merge_fences() {
  const auto waits = [this](auto& node) { return node->fences.size() > fences_done; };
  while (std::ranges::all_of(nodes, waits)) {
    wire::FenceDone message;
    message.set_sequence(nodes[0]->fences[fences_done].sequence());
    message.set_pmix(nodes[0]->fences[fences_done].pmix());
    for (auto& node : nodes)
      *message.mutable_key_values() += node->fences[fences_done].key_values();
    for (auto& node : nodes) node->send(message);
    ++fences_done;
    fence_ended();
  }
}

void TestCluster::pass_relays() {
  for (std::uint32_t from = 0; from < nodes.size(); ++from) {
    for (auto& message : std::exchange(nodes[from]->relays, {})) {
      if (loses && loses(message)) continue;
      const std::uint32_t to = message.node_index();
      message.set_node_index(from);
      if (to < nodes.size()) nodes[to]->send(message);
    }
  }
}

void TestCluster::end_on_failure() {
  const auto failed = [](const wire::TaskExit& exit) { return exit.code() + exit.signal() != 0; };
  const auto fails = [&](auto& node) {
    return node->abort.has_value() || std::ranges::any_of(node->ended, failed);
  };
  if (is_ended_ || std::ranges::none_of(nodes, fails)) return;
  is_ended_ = true;
  for (auto& node : nodes) node->signal(SIGKILL);
}

std::string TestCluster::output() const {
  std::string text;
  for (const auto& node : nodes) {
    for (const auto& [rank, out] : node->out) text += out;
  }
  return text;
}

std::string TestCluster::errors() const {
  std::string text;
  for (const auto& node : nodes) text += node->all_errors();
  return text;
}

}  // namespace score::shepherd::test
