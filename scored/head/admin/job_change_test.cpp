#include "scored/head/admin/job_change.hpp"

#include "proto/convert/convert.hpp"
#include "scored/head/store/settings.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::head {
namespace {

wire::ChangeJob message(std::initializer_list<JobKey> keys, const ResourceRequest& resources = {},
                        const std::string& name = "") {
  wire::ChangeJob out;
  for (const JobKey key : keys) out.add_keys(static_cast<std::uint32_t>(key));
  *out.mutable_resources() = proto::to_wire(resources);
  out.set_name(name);
  return out;
}

// A request in which every part differs from the default.
Requested other() {
  Requested out;
  ResourceRequest& r = out.resources;
  r.nodes = 2;
  r.most_nodes = 4;
  r.tasks = 8;
  r.tasks_per_node = 3;
  r.cpus_per_task = 5;
  r.memory_per_node = Bytes(1 << 20);
  r.only_nodes = {"n1"};
  r.except_nodes = {"n2"};
  r.features = {"fast"};
  r.generic = {{"gpu", 2}};
  r.queue = Queue::High;
  r.weight = 7;
  r.priority = -3;
  r.requeue = Requeue::Yes;
  r.scheduled_limit = 1h;
  r.wall_limit = 2h;
  r.limit_signal = 10;
  r.limit_signal_before = 30s;
  r.limit_signal_script = true;
  r.account = "physics";
  r.reservation = "course";
  out.name = "other";
  out.conditions.after = {{After::Ok, JobId(3)}};
  out.conditions.singleton = true;
  out.conditions.begin = WallTime(Duration(1h));
  out.conditions.deadline = WallTime(Duration(2h));
  return out;
}

TEST(JobChange, EachKeyChangesItsPartAlone) {
  Requested all;
  all.resources.requeue = Requeue::No;
  const Requested before = all;
  std::vector<JobKey> keys;
  for (const JobKeyRule& rule : job_keys()) {
    const JobChange change{{rule.key}, other()};
    const Requested one = apply_change(change, change.keys, before);
    EXPECT_NE(one, before) << rule.name;
    EXPECT_EQ(apply_change({{rule.key}, before}, change.keys, one), before) << rule.name;
    EXPECT_EQ(apply_change(change, {}, before), before);
    keys.push_back(rule.key);
  }
  EXPECT_EQ(apply_change({keys, other()}, keys, all), other());
}

TEST(JobChange, AuditShowsKeysAndValues) {
  ResourceRequest wanted;
  wanted.scheduled_limit = 2h;
  wanted.queue = Queue::High;
  wanted.nodes = 2;
  wanted.most_nodes = 4;
  EXPECT_EQ(
      describe(message({JobKey::Time, JobKey::Queue, JobKey::Nodes, JobKey::ElapsedTime}, wanted)),
      "time=2h, queue=high, nodes=2-4, wall-time=none");
  EXPECT_EQ(describe(message({JobKey::Name, JobKey::After}, {}, "a b")), "name=a b, after=none");
  EXPECT_EQ(describe(message({})), "");
}

TEST(JobChange, WrongMessagesAreRefused) {
  EXPECT_FALSE(read_change(message({})));
  EXPECT_FALSE(read_change(message({JobKey::Time, JobKey::Time})));
  EXPECT_FALSE(read_change(message({JobKey::Name}, {}, "")));
  EXPECT_FALSE(read_change(message({JobKey::Name}, {}, std::string(100'000, 'x'))));
  EXPECT_TRUE(read_change(message({JobKey::Time}, {}, "")));
  std::mt19937 random(7);
  const std::string sound =
      message({JobKey::Time, JobKey::Gres}, other().resources).SerializeAsString();
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = sound.substr(0, random() % (sound.size() + 1));
    for (int k = 0; k < 3 && !bytes.empty(); ++k)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    wire::ChangeJob parsed;
    if (parsed.ParseFromString(bytes)) (void)describe(parsed);
  }
}

TEST(JobChange, KeysDependOnTheState) {
  const std::vector nodes = {JobKey::Time, JobKey::Nodes};
  const std::vector begin = {JobKey::Begin};
  EXPECT_TRUE(check_keys({JobId(7)}, nodes));
  EXPECT_EQ(check_keys({JobId(7), true}, nodes).error().context().substr(0, 27),
            "nodes: job 7 has started; o");
  EXPECT_TRUE(check_keys({JobId(7)}, begin));
  EXPECT_FALSE(check_keys({JobId(7), true}, begin));
  EXPECT_FALSE(check_keys({JobId(7), false, true}, begin));
  EXPECT_FALSE(check_keys({JobId(7), false, false, true}, begin));
  EXPECT_FALSE(check_keys({JobId(7), false, false, false, true}, begin));
}

TEST(JobChange, LimitsAreLoweredOrRaised) {
  const auto limits = [](Duration scheduled, Duration wall) {
    ResourceRequest out;
    out.scheduled_limit = scheduled;
    out.wall_limit = wall;
    return out;
  };
  EXPECT_TRUE(check_lowered(limits(0s, 0s), limits(1h, 1h)));
  EXPECT_TRUE(check_lowered(limits(2h, 2h), limits(1h, 2h)));
  EXPECT_FALSE(check_lowered(limits(2h, 0s), limits(0s, 0s)));
  EXPECT_EQ(check_lowered(limits(0s, 1h), limits(0s, 2h)).error().context().substr(0, 11),
            "wall-time: ");
}

TEST(StoredRequeue, ValueIsReadAsWritten) {
  const StoredRequeue request{AttemptId(1793), 2, "a user"};
  EXPECT_EQ(read_requeue(*requeue_setting(JobId(7), request).value), request);
  for (const char* text : {"", "1", "1 2", "x 1 a", "1 -1 a", "1  a", " 1 2 a"}) {
    EXPECT_EQ(read_requeue(text), std::nullopt) << text;
  }
}

TEST(Settings, LastSetOfJobIsReadBack) {
  const SaveSetting stored = checkpoint_setting(JobId(7), "/images/job_7/1");
  const auto read = read_settings({{stored.key, *stored.value}, {"checkpoint:x", "/y"}});
  EXPECT_EQ(read.saved, (std::map<JobId, std::string>{{JobId(7), "/images/job_7/1"}}));
}

}  // namespace
}  // namespace score::head
