#pragma once
// This fixture is for tests: a head with a store in a temporary directory, a clock that the test
// moves, and connections that only record what was sent.

#include "proto/convert/convert.hpp"
#include "proto/frames/hello.hpp"
#include "proto/frames/parse.hpp"
#include "scored/head/clients/client_session.hpp"
#include "scored/head/head.hpp"
#include "scored/head/nodes/node_session.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdlib.h>
#include <string>
#include <vector>

namespace score::head {

class FakeConnection final : public proto::Connection {
 public:
  explicit FakeConnection(std::string peer) : peer_(std::move(peer)) {}

  asio::awaitable<Result<proto::InFrame>> read(proto::Role) override {
    co_return fail(Errc::Closed, "test");
  }

  bool send(proto::FrameType type, std::string_view payload) override {
    if (is_stuck) bytes_ += payload.size();
    if (is_open_) sent.push_back({type, std::string(payload)});
    return is_open_;
  }

  bool send_shared(std::shared_ptr<const std::string> frame) override {
    std::array<std::byte, proto::kHeaderBytes> header{};
    std::memcpy(header.data(), frame->data(), header.size());
    if (is_stuck) queued_.push_back(frame);
    const auto type = proto::decode_header(header)->type;
    return send(static_cast<proto::FrameType>(type), frame->substr(proto::kHeaderBytes));
  }

  asio::awaitable<void> drained(std::size_t) override { co_return; }

  std::size_t queued_bytes() const override { return bytes_; }

  // The peer reads again.
  void read_all() {
    is_stuck = false;
    bytes_ = 0;
    queued_.clear();
  }

  void close() override { is_open_ = false; }

  bool is_open() const override { return is_open_; }

  const std::string& peer() const override { return peer_; }

  // Returns the messages of one type so far, in order.
  template <class Message>
  std::vector<Message> all() const {
    std::vector<Message> found;
    for (const proto::InFrame& frame : sent) {
      if (frame.type == proto::frame_type<Message>()) {
        found.push_back(*proto::parse<Message>(frame));
      }
    }
    return found;
  }

  std::vector<proto::InFrame> sent;
  bool is_stuck = false;  // the peer reads nothing

 private:
  std::size_t bytes_ = 0;  // queued
  std::vector<std::shared_ptr<const std::string>> queued_;
  std::string peer_;
  bool is_open_ = true;
};

class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }

  asio::awaitable<void> sleep_until(TimePoint) override { co_return; }

  WallTime wall() const override { return wall_at_0_ + now_.time_since_epoch(); }

  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{std::chrono::hours(1)};
  WallTime wall_at_0_ = wall_now() - std::chrono::hours(1);
};

template <class Message>
proto::InFrame frame_of(const Message& message) {
  return {proto::frame_type<Message>(), message.SerializeAsString()};
}

// FakeClient is a command: its session and what the head has sent to it.
struct FakeClient {
  std::shared_ptr<FakeConnection> connection;
  std::unique_ptr<ClientSession> session;

  template <class Message>
  bool say(const Message& message) {
    return session->dispatch(frame_of(message));
  }
};

// FakeNode is a node daemon that replies when the test says so.
struct FakeNode {
  std::shared_ptr<FakeConnection> connection;
  std::unique_ptr<NodeSession> session;

  bool say(const NodeToHead& message) {
    auto frame = proto::encode(message);
    return session->dispatch({frame.type, std::move(frame.payload)});
  }
};

inline constexpr UserId kAlice(1000);
inline constexpr UserId kBob(1001);
inline constexpr UserId kOperator(1002);

// Without a grace, the configured one applies.
inline wire::CancelJob cancel(JobId job, std::optional<Duration> grace = {}) {
  wire::CancelJob message;
  message.set_job(job.value());
  if (grace) message.set_grace_ns(grace->count());
  return message;
}

class HeadFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "score_head_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    config_.nodes = {"n0", "n1"};
    config_.operators = {{"1002"}, ""};
    start_head();
  }

  void TearDown() override {
    head_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Starts or restarts the head; a restarted head has only what is on disk.
  void start_head() {
    head_.reset();
    auto store = Store::open(directory_);
    ASSERT_TRUE(store) << store.error().message();
    if (term_ != Epoch()) {
      ASSERT_TRUE(store->begin_log(term_));
    }
    auto reader = StoreReader::open(store->path());
    ASSERT_TRUE(reader);
    auto head = Head::open(io_, clock_, config_, std::move(*store), std::move(*reader), requests_);
    ASSERT_TRUE(head) << head.error().message();
    head_ = std::move(*head);
    for_clients_.emplace(head_->for_clients());
    if (term_ != Epoch()) release_when_committed();
  }

  // Acts for the other head: it stores each transaction while `follows_` is true.
  void release_when_committed() {
    committed_ = 0;
    head_->commits().on_committed([this](std::uint64_t sequence, const std::string&) {
      committed_ = sequence;
      if (follows_) head_->commits().release(sequence);
    });
  }

  // Returns when all changes so far are on this head's disk, though the other head may lack them.
  void settle_alone() {
    for (int i = 0; i < 2; ++i) {  // the first transaction may have begun before this call
      const std::uint64_t before = committed_;
      head_->commits().after({});
      ASSERT_TRUE(pump_until([this, before] { return committed_ > before; }));
    }
  }

  // Runs callbacks of the commit log until `done`.
  template <typename Predicate>
  bool pump_until(Predicate done) {
    io_.restart();
    const auto work = asio::require(io_.get_executor(), asio::execution::outstanding_work.tracked);
    while (!done()) {
      if (io_.run_one_for(std::chrono::seconds(120)) == 0) return false;
    }
    return true;
  }

  // Returns when everything is stored and everything that waited for it is done.
  void settle() {
    for (int i = 0; i < 3; ++i) {
      bool stored = false;
      head_->commits().after([&stored](const Status&) { stored = true; });
      ASSERT_TRUE(pump_until([&stored] { return stored; }));
    }
  }

  // Makes the head reload a changed configuration.
  void reload(const HeadConfig& changed) {
    file_ = changed;
    Status status = fail(Errc::WrongState, "not answered");
    const Peer root{UserId(0), proto::Role::Root, "root"};
    head_->admin().execute(root, ReloadConfiguration(), [&status](const auto& reply) {
      status = reply ? Status() : reply.error();
    });
    settle();
    ASSERT_TRUE(status) << status.error().message();
  }

  // Lets time pass, so that deadlines are reached.
  void pass(Duration time) {
    clock_.advance(time);
    head_->tick();
    settle();
  }

  // Lets time pass while these nodes send heartbeats.
  void pass_alive(Duration time, std::vector<FakeNode*> nodes) {
    for (Duration passed{0}; passed <= time; passed += 1s) {
      for (FakeNode* node : nodes) node->session->dispatch(frame_of(wire::Heartbeat()));
      pass(1s);
    }
  }

  FakeClient connect(UserId user, bool greet = true, const std::string& via = "socket") {
    FakeClient client;
    client.connection = std::make_shared<FakeConnection>("client");
    ClientSession::Setup setup;
    setup.id = ClientId(next_client_++);
    setup.peer = {user, head_->users().role(user, clock_.now()), "u" + std::to_string(user.value()),
                  via};
    setup.connection = client.connection;
    setup.budget = std::make_shared<UserBudget>();
    client.session = std::make_unique<ClientSession>(*for_clients_, clock_, std::move(setup));
    if (greet) {
      EXPECT_TRUE(client.say(hello()));
    }
    return client;
  }

  static wire::ClientHello hello() {
    wire::ClientHello message;
    message.set_lowest_version(proto::spoken_versions().lowest);
    message.set_highest_version(proto::spoken_versions().highest);
    return message;
  }

  static wire::Set setting(const std::string& name, const std::string& value) {
    wire::Set message;
    message.set_name(name);
    message.set_value(value);
    return message;
  }

  std::string value_in_force(std::string_view name) const {
    const wire::Info info = head_->overview().info();
    for (const auto& each : info.settings()) {
      if (each.name() == name) return each.value();
    }
    return {};
  }

  static wire::Submit submission(std::uint32_t nodes = 2) {
    wire::Submit message;
    message.set_tag(1);
    ResourceRequest request;
    request.nodes = nodes;
    request.weight = limits::kDefaultWeight;
    *message.mutable_resources() = proto::to_wire(request);
    wire::LaunchSpec& spec = *message.mutable_spec();
    spec.add_programs()->add_argv("true");
    spec.set_directory("/");
    spec.set_stdin_rank(0);
    message.set_allow_root(true);
    return message;
  }

  // Returns 0 if the submission is refused.
  JobId submit(FakeClient& client, const wire::Submit& message) {
    const std::size_t before = client.connection->sent.size();
    client.say(message);
    settle();
    for (std::size_t i = before; i < client.connection->sent.size(); ++i) {
      const proto::InFrame& frame = client.connection->sent[i];
      if (frame.type == proto::FrameType::Submitted) {
        return JobId(proto::parse<wire::Submitted>(frame)->job());
      }
    }
    return JobId();
  }

  FakeNode connect_node(std::uint32_t index, std::vector<AttemptReport> attempts = {},
                        bool takes_secrets = true) {
    FakeNode node;
    node.connection = std::make_shared<FakeConnection>("node");
    node.session =
        std::make_unique<NodeSession>(head_->for_nodes(), clock_, NodeId(index), node.connection);
    NodeHello hello;
    hello.info = {"n" + std::to_string(index), 1, Bytes(1 << 30)};
    hello.attempts = std::move(attempts);
    auto message = proto::make_hello(hello);
    message.set_takes_attempt_secrets(takes_secrets);
    message.set_passes_refusals(true);
    EXPECT_TRUE(node.session->greet(frame_of(message)));
    return node;
  }

  // Takes a job from submission to running on both nodes; returns its attempt.
  AttemptId launch(FakeClient& client, FakeNode& first, FakeNode& second,
                   const wire::Submit& message = submission()) {
    const JobId job = submit(client, message);
    EXPECT_NE(job, JobId());
    const auto prepares = first.connection->all<wire::PrepareTasks>();
    if (prepares.empty()) return AttemptId();
    const AttemptId attempt(prepares.back().attempt());
    first.say(Prepared{attempt});
    second.say(Prepared{attempt});
    settle();
    first.say(Started{attempt});
    second.say(Started{attempt});
    settle();
    return attempt;
  }

  // Submits a job and makes it run on these nodes; returns its attempt.
  AttemptId run_on(const std::vector<FakeNode*>& nodes, FakeClient& client,
                   const wire::Submit& message) {
    const JobId job = submit(client, message);
    EXPECT_NE(job, JobId());
    const AttemptId attempt = newest(*nodes.front());
    EXPECT_EQ(job_of(attempt), job);
    for (FakeNode* node : nodes) node->say(Prepared{attempt});
    pass(100ms);
    for (FakeNode* node : nodes) node->say(Started{attempt});
    settle();
    return attempt;
  }

  // Ends the only task of a node, and with it the node's part of the attempt.
  static void finish(FakeNode& node, AttemptId attempt, std::uint32_t rank, std::int32_t code = 0) {
    Exited exited;
    exited.attempt = attempt;
    exited.exits = {{Rank(rank), code, 0}};
    node.say(TaskEnded{attempt, exited.exits[0]});
    node.say(exited);
  }

  // Makes a task's output; `offset` is its position in all output of its node.
  static wire::TaskOutput output(AttemptId attempt, std::string data, std::uint64_t offset) {
    wire::TaskOutput message;
    message.set_attempt(attempt.value());
    message.set_stream(wire::STDOUT);
    message.set_data(std::move(data));
    message.set_offset(offset);
    return message;
  }

  static wire::Attach attachment(JobId job, bool front_end = true) {
    wire::Attach message;
    message.set_tag(9);
    message.set_job(job.value());
    message.set_front_end(front_end);
    message.set_input(front_end);
    message.set_window_bytes(limits::kIoWindowBytes);
    return message;
  }

  // Returns the text of the last error; "" if there is none.
  static std::string refusal(const FakeClient& client) {
    const auto failed = client.connection->all<wire::Failed>();
    return failed.empty() ? "" : failed.back().error().text();
  }

  // Returns the last attempt that the node was sent.
  static AttemptId newest(const FakeNode& node) {
    const auto prepares = node.connection->all<wire::PrepareTasks>();
    return prepares.empty() ? AttemptId() : AttemptId(prepares.back().attempt());
  }

  // Starts a task on one node; end() ends it.
  void start(FakeNode& node, AttemptId attempt) {
    node.say(Prepared{attempt});
    pass(50ms);
    node.say(Started{attempt});
    settle();
  }

  void end(FakeNode& node, AttemptId attempt, std::int32_t code = 0) {
    node.say(Exited{attempt, {{Rank(0), code, 0}}, ""});
    settle();
  }

  wire::JobStatus status_of(FakeClient& client, JobId job) {
    wire::ListJobs question;
    question.add_jobs(job.value());
    client.say(question);
    return client.connection->all<wire::JobList>().back().jobs(0);
  }

  // Returns the first of its reasons; "" if there is none.
  std::string reason_of(FakeClient& client, JobId job) {
    const auto status = status_of(client, job);
    return status.reasons_size() == 0 ? "" : status.reasons(0);
  }

  JobState state_of(FakeClient& client, JobId job) {
    wire::ListJobs question;
    question.add_jobs(job.value());
    client.say(question);
    const auto lists = client.connection->all<wire::JobList>();
    if (lists.empty() || lists.back().jobs_size() == 0) return JobState::Pending;
    return static_cast<JobState>(lists.back().jobs(0).state());
  }

  std::string directory_;
  HeadConfig config_;
  asio::io_context io_{1};
  ManualClock clock_;
  std::optional<HeadConfig> file_;  // as a reload reads it; none: as the head started
  DaemonRequests requests_{[this] { return Result<HeadConfig>(file_.value_or(config_)); }, [] {}};
  Epoch term_{};                 // of one of two heads; 0: a single head
  bool follows_ = true;          // the other head stores the log
  std::uint64_t committed_ = 0;  // last transaction of the log
  std::uint64_t next_client_ = 1;
  std::unique_ptr<Head> head_;
  std::optional<ClientSession::Parts> for_clients_;
};

}  // namespace score::head
