// Every request that changes something is answered when its change is on disk, and refused without
// any change when the disk is full or broken.
#include "tests/support/head/failing_disk.hpp"
#include "tests/support/head/head_fixture.hpp"

#include <csignal>
#include <functional>

namespace score::head {
namespace {

using Control = wire::ControlJob;
using Mode = FailingDisk::Mode;

// OnDisk is the state that a crash at this instant would leave.
struct OnDisk {
  std::map<std::string, std::string> settings;
  std::map<JobId, StoredJob> jobs;

  [[nodiscard]] bool has(const std::string& key, const std::string& value) const {
    const auto found = settings.find(key);
    return found != settings.end() && found->second == value;
  }

  [[nodiscard]] wire::ResourceRequest resources(JobId job) const {
    wire::ResourceRequest request;
    const auto found = jobs.find(job);
    if (found != jobs.end()) {
      EXPECT_TRUE(request.ParseFromString(found->second.info.resources.str()));
    }
    return request;
  }
};

struct Case {
  std::string name;
  std::function<void(FakeClient&)> ask;
  std::function<bool(const OnDisk&)> is_stored;
};

class DurableTest : public HeadFixture {
 protected:
  void TearDown() override {
    disk_.set(Mode::Works);
    HeadFixture::TearDown();
  }

  OnDisk read_disk() {
    namespace fs = std::filesystem;
    const fs::path copy = directory_ + ".copy";
    fs::remove_all(copy);
    fs::create_directory(copy);
    fs::permissions(copy, fs::perms::owner_all);
    for (const char* name : {"jobs.db", "jobs.db-wal", "head.lock"}) {
      const fs::path source = fs::path(directory_) / name;
      if (fs::exists(source)) fs::copy(source, copy / name);
    }
    OnDisk found;
    {
      auto store = Store::open(copy);
      EXPECT_TRUE(store) << store.error().message();
      if (!store) return found;
      found.settings = store->settings().value();
      const auto jobs = store->active_jobs();
      EXPECT_TRUE(jobs);
      for (const StoredJob& job : jobs.value()) found.jobs.emplace(job.info.id, job);
    }
    fs::remove_all(copy);
    return found;
  }

  static std::size_t refusals(const FakeClient& client) {
    return client.connection->all<wire::Failed>().size();
  }

  static std::size_t acceptances(const FakeClient& client) {
    return client.connection->all<wire::Done>().size() +
           client.connection->all<wire::Submitted>().size();
  }

  // Blocks forever if there is no reply.
  void ask(FakeClient& client, const Case& one) {
    const std::size_t before = refusals(client) + acceptances(client);
    one.ask(client);
    ASSERT_TRUE(pump_until([&] { return refusals(client) + acceptances(client) > before; }));
  }

  // Starts a job with the client as its front end.
  JobId running_job(FakeClient& client, FakeNode& first, FakeNode& second) {
    const JobId job = job_of(launch(client, first, second));
    client.say(attachment(job));
    return job;
  }

  JobId waiting_job(FakeClient& client, bool held = false) {
    wire::Submit message = submission(16);  // more than there are
    message.mutable_resources()->set_nodes(2);
    message.mutable_resources()->set_held(held);
    message.set_detached(true);
    return submit(client, message);
  }

  template <class Message>
  static Case about(const std::string& name, const Message& message,
                    std::function<bool(const OnDisk&)> is_stored) {
    return {name, [message](FakeClient& client) { client.say(message); }, std::move(is_stored)};
  }

  static Case control(Control::What what, JobId job, std::function<bool(const OnDisk&)> is_stored) {
    Control message;
    message.set_job(job.value());
    message.set_what(what);
    message.set_weight(77);
    message.set_priority(5);
    return about(Control::What_Name(what), message, std::move(is_stored));
  }

  std::vector<Case> cases_of_jobs(FakeClient& root) {
    const JobId a = waiting_job(root);
    const JobId b = waiting_job(root, true);
    const JobId c = waiting_job(root);
    wire::CancelJob cancel;
    cancel.set_job(c.value());
    cancel.set_grace_ns(-1);
    const auto submits = [](FakeClient& client) {
      wire::Submit message = submission(2);
      message.mutable_spec()->set_job_name("asked for");
      client.say(message);
    };
    const auto is_there = [](const OnDisk& disk) {
      return std::ranges::any_of(
          disk.jobs, [](const auto& job) { return job.second.info.name == "asked for"; });
    };
    return {
        {"submit", submits, is_there},
        control(Control::HOLD, a, [a](const auto& d) { return d.resources(a).held(); }),
        control(Control::RELEASE, b,
                [b](const auto& d) { return d.jobs.contains(b) && !d.resources(b).held(); }),
        control(Control::SET_WEIGHT, a,
                [a](const auto& d) { return d.resources(a).weight() == 77; }),
        control(Control::SET_PRIORITY, a,
                [a](const auto& d) { return d.resources(a).priority() == 5; }),
        about("cancel", cancel,
              [c](const auto& d) {
                return !d.jobs.contains(c) || d.has(fmt::format("cancel:{}", c), "u0");
              }),
    };
  }

  static std::vector<Case> cases_of_the_cluster() {
    wire::DrainNodes drain;
    drain.add_nodes("n[0-1]");
    drain.set_reason("fans");
    wire::DrainNodes resume;
    resume.add_nodes("n1");
    resume.set_resume(true);
    return {
        about("quantum", setting("quantum", "50ms"),
              [](const auto& d) { return d.has("quantum", "50ms"); }),
        about("slots", setting("slots", "5"), [](const auto& d) { return d.has("slots", "5"); }),
        about("idle", setting("idle", "off"), [](const auto& d) { return d.has("idle", "off"); }),
        about("fill", setting("fill", "on"), [](const auto& d) { return d.has("fill", "on"); }),
        about("overcommit", setting("overcommit", "off"),
              [](const auto& d) { return d.has("overcommit", "off"); }),
        about("drain", drain,
              [](const auto& d) { return d.has("drain:n0", "fans") && d.has("drain:n1", "fans"); }),
        about("resume a node", resume,
              [](const auto& d) { return !d.settings.contains("drain:n1"); }),
        about("reload", wire::Reload(), [](const auto& d) { return d.has("slots", "6"); }),
    };
  }

  // Returns the changes of a running job; only its front end may detach.
  std::vector<Case> cases_of_a_running_job(JobId job) {
    const auto is = [job](JobState state) {
      return [job, state](const OnDisk& d) { return d.jobs.at(job).progress.state == state; };
    };
    wire::Detach detach;
    detach.set_job(job.value());
    return {control(Control::SUSPEND, job, is(JobState::Suspended)),
            control(Control::RESUME, job, is(JobState::Running)),
            about("detach", detach,
                  [job](const OnDisk& d) { return d.jobs.at(job).progress.detached; })};
  }

  void expect_durable(FakeClient& client, const Case& one) {
    const std::size_t before = acceptances(client);
    ask(client, one);
    EXPECT_EQ(acceptances(client), before + 1) << one.name;
    EXPECT_TRUE(one.is_stored(read_disk())) << one.name << " was answered before it was stored";
  }

  // Checks that the request is refused while the disk is broken, and leaves no trace when it works
  // again.
  void expect_refused(FakeClient& client, const Case& one, Mode mode) {
    const bool was_stored = one.is_stored(read_disk());
    const std::size_t before = refusals(client);
    disk_.set(mode);
    ask(client, one);
    disk_.set(Mode::Works);
    EXPECT_EQ(refusals(client), before + 1) << one.name;
    settle();
    EXPECT_EQ(one.is_stored(read_disk()), was_stored) << one.name << " was refused and is stored";
  }

  void check(FakeClient& client, const std::vector<Case>& cases) {
    for (const Case& one : cases) {
      for (const Mode mode : {Mode::Full, Mode::BadWrites, Mode::BadSyncs}) {
        if (one.name != "detach") expect_refused(client, one, mode);
      }
      expect_durable(client, one);
    }
  }

  FailingDisk disk_;
};

TEST_F(DurableTest, AnsweredJobChangesAreOnDisk) {
  FakeClient root = connect(UserId(0));
  check(root, cases_of_jobs(root));
}

TEST_F(DurableTest, AnsweredClusterChangesAreOnDisk) {
  file_ = config_;
  file_->settings.set(Setting::Slots, 6);
  FakeClient root = connect(UserId(0));
  check(root, cases_of_the_cluster());
}

TEST_F(DurableTest, AnsweredRunningJobChangesAreOnDisk) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient root = connect(UserId(0));
  const JobId job = running_job(root, first, second);
  check(root, cases_of_a_running_job(job));
}

TEST_F(DurableTest, RefusedDetachKeepsTheFrontEndsGrace) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient root = connect(UserId(0));
  const JobId job = running_job(root, first, second);
  expect_refused(root, cases_of_a_running_job(job).back(), Mode::Full);
  pass_alive(config_.front_end_grace + 1s, {&first, &second});
  const auto signals = first.connection->all<wire::SignalTasks>();
  ASSERT_FALSE(signals.empty());
  EXPECT_EQ(signals[0].signal(), SIGTERM);
  EXPECT_TRUE(first.connection->all<wire::KillTasks>().empty());
  pass_alive(config_.kill_grace + 1s, {&first, &second});
  EXPECT_FALSE(first.connection->all<wire::KillTasks>().empty());
}

TEST_F(DurableTest, SavedProgressDoesNotUndoASuspension) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient root = connect(UserId(0));
  const JobId job = running_job(root, first, second);
  settle();
  const std::vector<Case> cases = cases_of_a_running_job(job);
  cases[0].ask(root);
  clock_.advance(11s);  // what it has used is saved while the suspension is being stored
  head_->tick();
  ASSERT_TRUE(pump_until([&] { return acceptances(root) == 2; }));
  settle();
  EXPECT_TRUE(cases[0].is_stored(read_disk()));
}

TEST_F(DurableTest, CommandsForOneJobRunInOrder) {
  FakeClient root = connect(UserId(0));
  const JobId job = waiting_job(root);
  for (int i = 0; i < 5; ++i) {
    control(Control::HOLD, job, {}).ask(root);
    control(Control::SET_WEIGHT, job, {}).ask(root);
    control(Control::RELEASE, job, {}).ask(root);
  }
  settle();
  EXPECT_TRUE(pump_until([&] { return acceptances(root) == 16; }));
  const wire::ResourceRequest stored = read_disk().resources(job);
  EXPECT_FALSE(stored.held());
  EXPECT_EQ(stored.weight(), 77U);
}

TEST_F(DurableTest, CancelSurvivesARestart) {
  FakeClient root = connect(UserId(0));
  const JobId job = waiting_job(root);
  wire::CancelJob cancel;
  cancel.set_job(job.value());
  cancel.set_grace_ns(0);
  const std::size_t before = acceptances(root);
  root.say(cancel);
  ASSERT_TRUE(pump_until([&] { return acceptances(root) > before; }));
  settle();
  start_head();
  pass(1ms);
  FakeClient again = connect(UserId(0));
  EXPECT_EQ(state_of(again, job), JobState::Cancelled);
}

}  // namespace
}  // namespace score::head
