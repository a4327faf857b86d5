// These tests show what passes through the head between nodes and front ends, as the sessions see
// it.
#include "tests/support/head/head_fixture.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace score::head {
namespace {

using StreamsTest = HeadFixture;

// Nodes repeat what was in flight, and from these offsets a front end knows what it already has.
TEST_F(StreamsTest, OutputHasItsNodeAndOffset) {
  AttemptId attempt;
  {
    FakeNode first = connect_node(0);
    FakeNode second = connect_node(1);
    FakeClient client = connect(kAlice);
    attempt = launch(client, first, second);
  }
  start_head();
  FakeNode first = connect_node(0, {{attempt, AttemptPhase::Running, {}, {}}});
  FakeNode second = connect_node(1, {{attempt, AttemptPhase::Running, {}, {}}});
  second.session->dispatch(frame_of(output(attempt, "again", 70)));
  first.session->dispatch(frame_of(output(attempt, "first", 5)));
  FakeClient client = connect(kAlice);
  wire::Attach attach = attachment(JobId(1));
  attach.set_have_bytes(80);
  client.say(attach);
  settle();
  second.session->dispatch(frame_of(output(attempt, "ain and more", 73)));
  const auto sent = client.connection->all<wire::Output>();
  ASSERT_EQ(sent.size(), 3u);
  const auto stands = [&attempt](const wire::Output& one) {
    EXPECT_EQ(one.attempt(), attempt.value());
    return std::tuple(one.node_index(), one.offset(), one.data());
  };
  EXPECT_EQ(stands(sent[0]), std::tuple(1U, 70U, "again"));
  EXPECT_EQ(stands(sent[1]), std::tuple(0U, 5U, "first"));
  EXPECT_EQ(stands(sent[2]), std::tuple(1U, 75U, "n and more"));
}

void end_rank(FakeNode& node, AttemptId attempt, std::uint32_t rank) {
  Exited exited;
  exited.attempt = attempt;
  exited.exits = {{Rank(rank), 0, 0}};
  node.say(TaskEnded{attempt, exited.exits[0]});
  node.say(exited);
}

TEST_F(StreamsTest, DetachedJobsOutputIsKeptAfterItsEnd) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = submission();
  message.set_detached(true);
  const AttemptId attempt = launch(client, first, second, message);
  first.session->dispatch(frame_of(output(attempt, "hello\n", 0)));
  end_rank(first, attempt, 0);
  end_rank(second, attempt, 1);
  settle();
  for (int time = 0; time < 2; ++time) {
    pass(config_.front_end_grace + 1s);
    FakeClient late = connect(kAlice);
    late.say(attachment(JobId(1), false));
    settle();
    const auto sent = late.connection->all<wire::Output>();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].data(), "hello\n");
    ASSERT_EQ(late.connection->all<wire::JobEnded>().size(), 1U);
  }
}

// One user's many jobs do not displace what another user's job has written.
TEST_F(StreamsTest, KeptOutputOfOthersOutlivesManyJobs) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  FakeClient bob = connect(kBob);
  wire::Submit message = submission();
  message.set_detached(true);
  const auto run = [&](FakeClient& client, std::size_t chunks) {
    const AttemptId attempt = launch(client, first, second, message);
    for (std::size_t i = 0; i < chunks; ++i) {
      const std::size_t bytes = limits::kIoChunkBytes;
      first.session->dispatch(frame_of(output(attempt, std::string(bytes, 'x'), i * bytes)));
    }
    end_rank(first, attempt, 0);
    end_rank(second, attempt, 1);
    settle();
  };
  run(bob, 1);
  for (int i = 0; i < 260; ++i) run(alice, 3);
  pass(config_.front_end_grace + 1s);
  FakeClient late = connect(kBob);
  late.say(attachment(JobId(1), false));
  settle();
  EXPECT_EQ(late.connection->all<wire::Output>().size(), 1U);
}

// A shepherd belongs to its user, and the link that it would fill also serves other jobs.
TEST_F(StreamsTest, RepeatedFenceEndsTheJob) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::FenceEnter enter;
  enter.set_attempt(launch(client, first, second).value());
  enter.set_key_values("a");
  first.session->dispatch(frame_of(enter));
  second.session->dispatch(frame_of(enter));
  first.session->dispatch(frame_of(enter));
  EXPECT_EQ(first.connection->all<wire::FenceDone>().size(), 2u) << "the answer may have been lost";
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
  for (int i = 0; i < 3; ++i) first.session->dispatch(frame_of(enter));
  EXPECT_EQ(first.connection->all<wire::FenceDone>().size(), 2u);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Completing);
}

// Nodes of this release announce their key-values, and the head keeps none of them.
TEST_F(StreamsTest, LargeFenceTravelsInPieces) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::FenceEnter enter;
  enter.set_attempt(launch(client, first, second).value());
  enter.set_step(wire::FenceEnter::ANNOUNCE);
  enter.set_bytes(100'000);
  first.session->dispatch(frame_of(enter));
  enter.set_bytes(0);
  second.session->dispatch(frame_of(enter));
  const auto fetches = first.connection->all<wire::FenceDone>();
  ASSERT_EQ(fetches.size(), 2u);
  EXPECT_TRUE(second.connection->all<wire::FenceDone>().empty());
  for (const wire::FenceDone& fetch : fetches) {
    wire::FenceEnter piece = enter;
    piece.set_step(wire::FenceEnter::PIECE);
    piece.set_offset(fetch.offset());
    piece.set_key_values(std::string(fetch.fetch(), 'k'));
    first.session->dispatch(frame_of(piece));
  }
  std::string got;
  for (const wire::FenceDone& piece : second.connection->all<wire::FenceDone>()) {
    EXPECT_EQ(piece.offset(), got.size());
    EXPECT_EQ(piece.bytes(), 100'000u);
    got += piece.key_values();
  }
  EXPECT_EQ(got, std::string(100'000, 'k'));
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
}

TEST_F(StreamsTest, HostileFenceEndsItsJobOnly) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::FenceEnter enter;
  enter.set_attempt(launch(client, first, second).value());
  enter.set_step(wire::FenceEnter::ANNOUNCE);
  enter.set_bytes(std::uint64_t{1} << 40U);
  EXPECT_TRUE(first.session->dispatch(frame_of(enter))) << "the connection stays";
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Completing);
  EXPECT_NE(reason_of(client, JobId(1)).find("PMI key-values of all ranks exceed"),
            std::string::npos)
      << reason_of(client, JobId(1));
}

// The sender repeats what is dropped, so neither the job nor the connection has to end.
TEST_F(StreamsTest, RelaysBeyondBudgetAreDropped) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::JobRelay relay;
  relay.set_attempt(launch(client, first, second).value());
  relay.set_node_index(1);
  relay.mutable_message()->set_data(std::string((1 << 20) - 200, 'x'));
  for (int i = 0; i < 100; ++i) first.session->dispatch(frame_of(relay));
  EXPECT_EQ(second.connection->all<wire::JobRelay>().size(), 100u) << "they are read";
  second.connection->is_stuck = true;
  for (int i = 0; i < 100; ++i) first.session->dispatch(frame_of(relay));
  EXPECT_EQ(second.connection->all<wire::JobRelay>().size(), 100u + 16u) << "a user's budget";
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
  second.connection->read_all();
  first.session->dispatch(frame_of(relay));
  EXPECT_EQ(second.connection->all<wire::JobRelay>().size(), 100u + 17u);
}

// A node asks before it sends a large message; what all nodes of a user may send is bounded.
TEST_F(StreamsTest, LargeRelaysWaitForRoom) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::JobRelay question;
  question.set_attempt(launch(client, first, second).value());
  question.set_ask_bytes(6 << 20);
  const auto answers = [](const FakeNode& node) {
    return std::ranges::count_if(node.connection->all<wire::JobRelay>(),
                                 [](const auto& relay) { return relay.may_send(); });
  };
  second.connection->is_stuck = true;
  wire::JobRelay large = question;
  large.clear_ask_bytes();
  large.set_node_index(1);
  large.mutable_message()->set_data(std::string((6 << 20) - 100, 'x'));
  for (int i = 0; i < 2; ++i) {
    first.session->dispatch(frame_of(question));
    EXPECT_EQ(answers(first), i + 1);
    first.session->dispatch(frame_of(large));
  }
  for (int i = 0; i < 5; ++i) first.session->dispatch(frame_of(question));
  EXPECT_EQ(answers(first), 2) << "the other node has read nothing";
  question.set_ask_bytes(std::uint64_t{1} << 40U);
  second.connection->read_all();
  first.session->dispatch(frame_of(question));
  EXPECT_EQ(answers(first), 2) << "no message is that large";
  question.set_ask_bytes(6 << 20);
  first.session->dispatch(frame_of(question));
  EXPECT_EQ(answers(first), 3);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
}

// ---- output that no front end reads

// A shepherd with a window of output. It repeats what was not acknowledged when it is asked to.
class FakeShepherd {
 public:
  FakeShepherd(FakeNode& node, AttemptId attempt, std::uint32_t rank)
      : node_(node), attempt_(attempt), rank_(rank) {
    for (std::size_t i = 0; i < limits::kIoWindowBytes; ++i) {
      all_ += static_cast<char>('a' + (i / 1000 + rank) % 26);
    }
    seen_ = node_.connection->sent.size();
  }

  void send() {
    for (std::size_t at = acknowledged_; at < all_.size(); at += limits::kIoChunkBytes) {
      wire::TaskOutput message;
      message.set_attempt(attempt_.value());
      message.set_rank(rank_);
      message.set_stream(wire::STDOUT);
      message.set_data(all_.substr(at, limits::kIoChunkBytes));
      message.set_offset(at);
      message.set_may_refuse(true);
      node_.session->dispatch(frame_of(message));
    }
  }

  // Handles what the head has sent since the last call; returns true if there was something.
  bool step() {
    bool is_asked = false, is_any = false;
    for (; seen_ < node_.connection->sent.size(); ++seen_) {
      const proto::InFrame& frame = node_.connection->sent[seen_];
      if (frame.type == proto::FrameType::TaskOutputTaken) {
        const auto taken = proto::parse<wire::TaskOutputTaken>(frame);
        if (taken->attempt() != attempt_.value()) continue;
        acknowledged_ += taken->bytes();
        is_any = true;
      } else if (frame.type == proto::FrameType::TaskOutputRefused) {
        const auto refused = proto::parse<wire::TaskOutputRefused>(frame);
        if (refused->attempt() != attempt_.value()) continue;
        was_refused_ = true;
        is_asked = is_asked || refused->repeat();
      }
    }
    if (is_asked) send();
    return is_any || is_asked;
  }

  [[nodiscard]] const std::string& all() const { return all_; }

  [[nodiscard]] bool was_refused() const { return was_refused_; }

  [[nodiscard]] bool is_done() const { return acknowledged_ == all_.size(); }

 private:
  FakeNode& node_;
  AttemptId attempt_;
  std::uint32_t rank_;
  std::string all_;
  std::size_t acknowledged_ = 0;
  std::size_t seen_ = 0;
  bool was_refused_ = false;
};

class UnreadOutputTest : public HeadFixture {
 protected:
  static constexpr std::uint32_t kJobs = 40;  // 20 MiB of output, more than a user's room

  // Starts the jobs of one user; no front end is there, and all of them print.
  void print(FakeClient& client) {
    for (std::uint32_t i = 0; i < kJobs; ++i) {
      const AttemptId attempt = launch(client, first_, second_);
      shepherds_.push_back(std::make_unique<FakeShepherd>(first_, attempt, 0));
      shepherds_.push_back(std::make_unique<FakeShepherd>(second_, attempt, 1));
    }
    for (auto& shepherd : shepherds_) shepherd->send();
    for (auto& shepherd : shepherds_) shepherd->step();
  }

  [[nodiscard]] std::size_t refused() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(shepherds_, [](const auto& one) { return one->was_refused(); }));
  }

  [[nodiscard]] bool are_done() const {
    return std::ranges::all_of(shepherds_, [](const auto& one) { return one->is_done(); });
  }

  void SetUp() override {
    HeadFixture::SetUp();
    first_ = connect_node(0);
    second_ = connect_node(1);
  }

  FakeNode first_, second_;
  std::vector<std::unique_ptr<FakeShepherd>> shepherds_;  // two per job
};

TEST_F(UnreadOutputTest, BeyondRoomIsRefusedAndComesLater) {
  FakeClient alice = connect(kAlice);
  print(alice);
  EXPECT_GT(refused(), 2 * kJobs / 2) << "each has had its share";
  FakeClient reader = connect(kAlice);
  for (std::uint32_t job = 1; job <= kJobs; ++job) reader.say(attachment(JobId(job)));
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::string> got;  // by job and rank
  std::size_t seen = 0;
  for (bool is_any = true; is_any;) {
    is_any = false;
    for (; seen < reader.connection->sent.size(); ++seen) {
      const proto::InFrame frame = reader.connection->sent[seen];
      if (frame.type != proto::FrameType::Output) continue;
      const auto message = proto::parse<wire::Output>(frame);
      got[{message->job(), message->rank()}] += message->data();
      wire::OutputTaken taken;
      taken.set_job(message->job());
      taken.set_bytes(message->data().size());
      reader.say(taken);
      is_any = true;
    }
    for (auto& shepherd : shepherds_) is_any |= shepherd->step();
  }
  EXPECT_TRUE(are_done());
  for (std::uint32_t job = 1; job <= kJobs; ++job) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const std::string& all = shepherds_[2 * (job - 1) + rank]->all();
      EXPECT_TRUE((got[{job, rank}] == all)) << job << " " << rank;
    }
  }
}

TEST_F(UnreadOutputTest, KeepsNoOutputOfOthersBack) {
  FakeClient alice = connect(kAlice);
  print(alice);
  FakeClient bob = connect(kBob);
  const AttemptId attempt = launch(bob, first_, second_);
  bob.say(attachment(job_of(attempt)));
  FakeShepherd shepherd(first_, attempt, 0);
  shepherd.send();
  EXPECT_FALSE(shepherd.was_refused());
  std::size_t bytes = 0;
  for (const auto& output : bob.connection->all<wire::Output>()) bytes += output.data().size();
  EXPECT_EQ(bytes, limits::kIoWindowBytes);
}

TEST_F(UnreadOutputTest, RefusedOutputOfKilledJobsIsTaken) {
  FakeClient alice = connect(kAlice);
  print(alice);
  for (std::uint32_t job = 1; job <= kJobs; ++job) {
    wire::CancelJob cancel;
    cancel.set_job(job);
    alice.say(cancel);
  }
  settle();
  for (bool is_any = true; is_any;) {
    is_any = false;
    for (auto& shepherd : shepherds_) is_any |= shepherd->step();
  }
  EXPECT_TRUE(are_done());
}

// An older node, or an older shepherd, would never send it again.
TEST_F(UnreadOutputTest, OlderShepherdsAreNotRefused) {
  FakeClient alice = connect(kAlice);
  std::size_t notices = 0;
  for (std::uint32_t i = 0; i < kJobs; ++i) {
    const AttemptId attempt = launch(alice, first_, second_);
    for (std::size_t at = 0; at < 2 * limits::kIoWindowBytes; at += limits::kIoChunkBytes) {
      first_.session->dispatch(
          frame_of(output(attempt, std::string(limits::kIoChunkBytes, 'x'), at)));
    }
    notices += first_.connection->all<wire::TaskOutputRefused>().size();
    EXPECT_EQ(state_of(alice, job_of(attempt)), JobState::Running);
  }
  EXPECT_EQ(notices, 0U);
}

TEST_F(UnreadOutputTest, InputBeforeTheStartIsLimitedPerUser) {
  FakeClient alice = connect(kAlice);
  wire::Submit held = submission();
  held.mutable_resources()->set_held(true);
  const std::uint32_t jobs = JobStreams::kMaxWaitingInput / limits::kIoWindowBytes;
  wire::Input input;
  input.set_data(std::string(limits::kIoChunkBytes, 'x'));
  for (std::uint32_t i = 0; i < jobs; ++i) {
    const JobId job = submit(alice, held);
    alice.say(attachment(job));
    input.set_job(job.value());
    for (std::size_t at = 0; at < limits::kIoWindowBytes; at += limits::kIoChunkBytes)
      alice.say(input);
    EXPECT_EQ(refusal(alice), "");
  }
  const JobId more = submit(alice, held);
  alice.say(attachment(more));
  input.set_job(more.value());
  alice.say(input);
  EXPECT_NE(refusal(alice).find("too much input waits"), std::string::npos) << refusal(alice);
}

}  // namespace
}  // namespace score::head
