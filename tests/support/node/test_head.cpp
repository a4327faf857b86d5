#include "tests/support/node/test_head.hpp"

#include "base/os/cgroup.hpp"
#include "base/os/cpu_cgroup.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::node::test {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kTestTimeout{120};
constexpr std::chrono::milliseconds kStep{2};

bool becomes(const std::function<bool()>& holds) {
  for (int i = 0; i < 5'000; ++i) {
    if (holds()) return true;
    poll(nullptr, 0, 2);
  }
  return false;
}

}  // namespace

char state_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid), 4'096);
  if (!text) return '-';
  return (*text)[text->rfind(')') + 2];
}

std::vector<pid_t> processes_with(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto pid = parse_number<pid_t>(entry.path().filename().string());
    if (!pid || *pid == getpid()) continue;
    const auto text = read_file(entry.path() / "cmdline", 1U << 20U);
    if (text && text->find(word) != std::string::npos && state_of(*pid) != 'Z') {
      found.push_back(*pid);
    }
  }
  return found;
}

TestHead::TestHead(bool wants_cgroups)
    : tasks_(io_.get_executor(), [](std::string_view, const std::exception_ptr&) {}),
      key_(proto::random_key()) {
  std::string name = (fs::temp_directory_path() / "scored-node-XXXXXX").string();
  dir = mkdtemp(name.data());
  fs::permissions(dir, fs::perms(0755));
  if (auto own = own_cgroup(); wants_cgroups && own) {
    cgroup_root_ = *own + "/" + dir.filename().string();
    if (!Cgroup::create(cgroup_root_)) cgroup_root_.clear();
  }
  [[maybe_unused]] auto stored = proto::store_key(dir / "key", derive_node_key(key_, "node1"));
  tls_ = proto::TlsContext::server(key_, [](std::string_view node) { return node == "node1"; });
  listener_ = std::make_unique<proto::TcpListener>(
      proto::TcpListener::open(io_.get_executor(), {"127.0.0.1", 0}).value());
  tasks_.spawn("serve", serve());
}

TestHead::~TestHead() {
  if (!cgroup_root_.empty()) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(cgroup_root_, ignored)) {
      std::ofstream(entry.path() / "cgroup.kill") << "1";
    }
  }
  kill_node();
  // Shepherds end by themselves when their sockets are gone, and the launcher then kills what is
  // left.
  for (const pid_t pid : processes_with("scored-shepherd")) {
    const auto environment = read_file(fmt::format("/proc/{}/stat", pid), 4'096);
    if (environment && split(*environment, ' ').size() > 3 &&
        split(*environment, ' ')[3] == std::to_string(launcher_)) {
      ::kill(pid, SIGKILL);
    }
  }
  if (launcher_ > 0) {
    const auto children = fmt::format("/proc/{0}/task/{0}/children", launcher_);
    becomes([&] { return read_file(children, 65'536).value_or("").empty(); });
    ::kill(launcher_, SIGKILL);
    waitpid(launcher_, nullptr, 0);
  }
  listener_->close();
  base::run(io_, tasks_.stop());
  if (!cgroup_root_.empty()) {
    remove_cpu_jobs(cgroup_root_);
    becomes([this] { return remove_cgroup_tree(cgroup_root_).has_value(); });
  }
  fs::remove_all(dir);
}

pid_t TestHead::spawn_program(const std::vector<std::string>& words, const std::string& log) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  dup2(open((dir / log).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), 2);
  execv(argv[0], argv.data());
  _exit(127);
}

void TestHead::start_launcher(const std::string& shepherd) {
  launcher_ = spawn_program(
      {LAUNCHER_PROGRAM, "--rundir", dir.string(), "--shepherd", shepherd, "--min-uid", "0"},
      "launcher.log");
  becomes([this] { return fs::exists(dir / "launcher.sock"); });
}

void TestHead::start_node() {
  node_ = spawn_program(
      {SCORED_PROGRAM, "--role=node", "--config=none", "--name", "node1", "--head",
       fmt::format("127.0.0.1:{}", listener_->port()), "--run-dir", dir.string(), "--launcher-dir",
       dir.string(), "--key-file", dir / "key", "--cores=2", "--memory=1G", "--log-level=debug",
       "--cgroup-root", has_cgroups() ? cgroup_root_ : "none"},
      "node.log");
}

void TestHead::kill_node() {
  if (node_ <= 0) return;
  ::kill(node_, SIGKILL);
  waitpid(node_, nullptr, 0);
  node_ = 0;
}

int TestHead::stop_node() {
  ::kill(node_, SIGTERM);
  int status = 0;
  if (!wait([&] { return waitpid(node_, &status, WNOHANG) == node_; })) return -1;
  node_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool TestHead::wait(const std::function<bool()>& holds) {
  const auto end = monotonic_now() + kTestTimeout;
  while (monotonic_now() < end) {
    if (holds()) return true;
    io_.restart();
    io_.run_for(kStep);
  }
  return holds();
}

asio::awaitable<void> TestHead::serve() {
  for (;;) {
    auto fd = co_await listener_->accept();
    if (!fd) co_return;
    proto::ConnectionLimits connection_limits;
    auto peer = co_await proto::tls_accept(*tls_, *std::move(fd), 5s, connection_limits);
    if (!peer) continue;
    connection_ = peer->connection;
    tasks_.spawn("talk", talk(connection_));
  }
}

asio::awaitable<void> TestHead::talk(std::shared_ptr<proto::Connection> connection) {
  for (;;) {
    auto frame = co_await connection->read(proto::Role::Node);
    if (!frame) co_return;
    on_frame(*connection, *std::move(frame));
  }
}

void TestHead::on_frame(proto::Connection& connection, proto::InFrame frame) {
  if (auto beat = proto::parse<wire::Heartbeat>(frame)) {
    ++beats;
    if (is_mute) return;
    wire::HeartbeatReply reply;
    reply.set_node_sent_ns(beat->node_sent_ns());
    reply.set_head_received_ns(monotonic_now().time_since_epoch().count());
    reply.set_head_sent_ns(monotonic_now().time_since_epoch().count());
    proto::send(connection, reply);
  } else if (auto hello = proto::parse<wire::NodeHello>(frame)) {
    hellos.push_back(*hello);
    beats = 0;
    wire::NodeWelcome welcome;
    welcome.set_version(1);
    welcome.set_head_epoch(head_epoch);
    welcome.set_head_proof(head_proof);
    welcome.set_bounded_exchange(bounds_exchange);
    proto::send(connection, welcome);
  } else if (auto exited = proto::parse<wire::Exited>(frame)) {
    if (forgets) forget(exited->attempt());
    frames.push_back(std::move(frame));
  } else if (auto output = proto::parse<wire::TaskOutput>(frame)) {
    outputs[output->attempt()][output->offset()] = output->data();
    wire::TaskOutputTaken taken;
    taken.set_attempt(output->attempt());
    taken.set_bytes(output->data().size());
    proto::send(connection, taken);
  } else {
    frames.push_back(std::move(frame));
  }
}

void TestHead::prepare_on(std::size_t nodes, std::uint64_t attempt, const std::string& script,
                          std::uint64_t memory) {
  wire::LaunchSpec spec;
  spec.set_job(attempt);
  auto& program = *spec.add_programs();
  for (const char* word : {"/bin/sh", "-c"}) program.add_argv(word);
  program.add_argv(script);
  spec.add_env("PATH=/usr/bin:/bin");
  spec.set_directory("/");
  spec.set_stdin_rank(-2);
  spec.set_mpi(wire::LaunchSpec::NONE);
  wire::PrepareTasks message;
  message.set_attempt(attempt);
  message.set_user(geteuid());
  spec.set_nodelist(fmt::format("node[1-{}]", nodes));
  for (std::size_t i = 1; i <= nodes; ++i) message.add_tasks_on_node(1);
  if (gives_cores) message.add_cores(0);
  message.set_memory_bytes(memory);
  message.set_spec(spec.SerializeAsString());
  send(message);
}

void TestHead::start(std::uint64_t attempt) {
  wire::StartTasks message;
  message.set_attempt(attempt);
  send(message);
}

void TestHead::forget(std::uint64_t attempt) {
  wire::ForgetTasks message;
  message.set_attempt(attempt);
  send(message);
}

void TestHead::kill(std::uint64_t attempt) {
  wire::KillTasks message;
  message.set_attempt(attempt);
  send(message);
}

void TestHead::take_turns(std::uint64_t epoch, std::vector<std::uint64_t> attempts,
                          std::chrono::nanoseconds quantum, bool fill) {
  base::Timetable table;
  table.epoch = Epoch{epoch};
  table.start = monotonic_now() + 20ms;
  for (const std::uint64_t attempt : attempts) {
    table.segments.push_back({table.cycle, quantum, {AttemptId{attempt}}});
    table.managed.push_back(AttemptId{attempt});
    table.cycle += quantum;
  }
  if (fill) table.fill = table.managed;
  send(proto::to_wire(base::SetTimetable{table}));
}

bool TestHead::run(std::uint64_t attempt, const std::string& script) {
  prepare(attempt, script);
  if (!expect<wire::Prepared>(attempt)) return false;
  start(attempt);
  return expect<wire::Started>(attempt) != nullptr;
}

std::string TestHead::idle_of(std::uint64_t attempt) const {
  const auto place = make_cpu_jobs_place();
  const auto prefix = cpu_job_prefix(cgroup_root_);
  for (const auto& job : {prefix && place ? *place + "/" + *prefix : "", cgroup_root_ + "/job_"}) {
    const auto text = read_file(fmt::format("{}{}/cpu.idle", job, attempt), 16);
    if (text) return std::string(trim(*text));
  }
  return "";
}

std::string TestHead::output(std::uint64_t attempt) const {
  std::string text;
  const auto found = outputs.find(attempt);
  if (found == outputs.end()) return text;
  for (const auto& [offset, data] : found->second) {
    if (offset > text.size()) return text + "<gap>";
    if (offset + data.size() > text.size()) text.resize(offset), text += data;
  }
  return text;
}

}  // namespace score::node::test
