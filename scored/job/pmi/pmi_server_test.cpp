#include "scored/job/pmi/pmi_server.hpp"

#include "base/limits.hpp"
#include "base/model/distribution.hpp"
#include "proto/frames/key_values.hpp"
#include "scored/job/plan/process_mapping.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::shepherd {
namespace {

constexpr const char* kInit = "cmd=init pmi_version=1 pmi_subversion=1\n";

PmiJob job_of(std::uint32_t size, std::uint32_t local_tasks) {
  return {.name = "kvs_1",
          .size = size,
          .local_tasks = local_tasks,
          .process_mapping = "(vector,(0,2,2))"};
}

// Returns the only reply to one command.
std::string ask(PmiServer& server, std::uint32_t task, const std::string& line) {
  const auto actions = server.receive(task, line);
  EXPECT_TRUE(actions.closed.empty()) << line;
  if (actions.replies.size() != 1) return "";
  EXPECT_EQ(actions.replies[0].task, task);
  return actions.replies[0].bytes;
}

TEST(PmiServer, AnswersAsMpichsClientExpects) {
  PmiServer server(job_of(4, 1));
  EXPECT_EQ(ask(server, 0, kInit), "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  EXPECT_EQ(ask(server, 0, "cmd=get_maxes\n"),
            "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=896\n");
  EXPECT_EQ(ask(server, 0, "cmd=get_appnum\n"), "cmd=appnum appnum=0\n");
  EXPECT_EQ(ask(server, 0, "cmd=get_my_kvsname\n"), "cmd=my_kvsname kvsname=kvs_1\n");
  EXPECT_EQ(ask(server, 0, "cmd=get_universe_size\n"), "cmd=universe_size size=4\n");
  EXPECT_EQ(ask(server, 0, "cmd=get kvsname=kvs_1 key=PMI_process_mapping\n"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,2,2))\n");
  EXPECT_EQ(ask(server, 0, "cmd=get kvsname=kvs_1 key=none\n"),
            "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  EXPECT_EQ(ask(server, 0, "cmd=get kvsname=other key=none\n"),
            "cmd=get_result rc=-1 msg=kvs_not_found value=unknown\n");
  EXPECT_EQ(ask(server, 0, "cmd=getbyidx kvsname=kvs_1 idx=0\n"),
            "cmd=getbyidx_results rc=0 nextidx=1 key=PMI_process_mapping val=(vector,(0,2,2))\n");
  EXPECT_EQ(ask(server, 0, "cmd=getbyidx kvsname=kvs_1 idx=1\n"),
            "cmd=getbyidx_results rc=-2 reason=no_more_keyvals\n");
  EXPECT_EQ(ask(server, 0, "cmd=finalize\n"), "cmd=finalize_ack\n");
}

TEST(PmiServer, AcceptsLongValuesIfAllClientsDo) {
  const auto put = [](std::size_t bytes) {
    return "cmd=put kvsname=kvs_1 key=a value=" + std::string(bytes, 'v') + "\n";
  };
  PmiServer server(job_of(1, 1));
  EXPECT_EQ(ask(server, 0, put(896)), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(ask(server, 0, put(897)), "cmd=put_result rc=-1 msg=value_too_long\n");
  PmiJob job = job_of(1, 1);
  job.takes_long_values = true;
  PmiServer wide(job);
  EXPECT_EQ(ask(wide, 0, "cmd=get_maxes\n"),
            "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=8200\n");
  EXPECT_EQ(ask(wide, 0, put(8200)), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(ask(wide, 0, "cmd=get kvsname=kvs_1 key=a\n"),
            "cmd=get_result rc=0 msg=success value=" + std::string(8200, 'v') + "\n");
  EXPECT_EQ(ask(wide, 0, put(8201)), "cmd=put_result rc=-1 msg=value_too_long\n");
}

TEST(PmiServer, RefusesOtherVersions) {
  PmiServer server(job_of(1, 1));
  EXPECT_EQ(ask(server, 0, "cmd=init pmi_version=2 pmi_subversion=0\n"),
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n");
}

TEST(PmiServer, FenceExchangesPutsWithOtherNodes) {
  PmiServer server(job_of(4, 2));
  EXPECT_EQ(ask(server, 0, "cmd=put kvsname=kvs_1 key=a value=1\n"),
            "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(ask(server, 1, "cmd=get kvsname=kvs_1 key=a\n"),
            "cmd=get_result rc=0 msg=success value=1\n");
  ask(server, 1, "cmd=put kvsname=kvs_1 key=b value=2\n");
  EXPECT_FALSE(server.receive(0, "cmd=barrier_in\n").fence.has_value());
  const auto all_in = server.receive(1, "cmd=barrier_in\n");
  ASSERT_TRUE(all_in.fence.has_value());
  EXPECT_TRUE(all_in.replies.empty());
  EXPECT_EQ(all_in.fence->sequence, 1U);
  EXPECT_EQ(server.pending_fence(), all_in.fence);
  std::string batch = all_in.fence->key_values;
  ASSERT_EQ(proto::parse_key_values(batch)->size(), 2U);
  ASSERT_TRUE(proto::append_key_value(batch, "c", "3").has_value());
  EXPECT_TRUE(server.fence_done(7, batch)->replies.empty());  // a fence that is not pending
  const auto out = server.fence_done(1, batch);
  ASSERT_TRUE(out.has_value());
  ASSERT_EQ(out->replies.size(), 2U);
  EXPECT_EQ(out->replies[1].bytes, "cmd=barrier_out rc=0\n");
  EXPECT_EQ(server.pending_fence(), std::nullopt);
  EXPECT_TRUE(server.fence_done(1, batch)->replies.empty());  // a repeat
  EXPECT_EQ(ask(server, 0, "cmd=get kvsname=kvs_1 key=c\n"),
            "cmd=get_result rc=0 msg=success value=3\n");
  server.receive(0, "cmd=barrier_in\n");
  const auto second = server.receive(1, "cmd=barrier_in\n");
  EXPECT_EQ(second.fence->sequence, 2U);
  EXPECT_EQ(second.fence->key_values, "");
}

TEST(PmiServer, FencesOfSingleNodeCompleteAtOnce) {
  PmiServer server(job_of(2, 2));
  server.receive(0, "cmd=put key=a value=1\ncmd=barrier_in\n");
  const auto actions = server.receive(1, "cmd=barrier_in\n");
  EXPECT_FALSE(actions.fence.has_value());
  EXPECT_EQ(actions.replies.size(), 2U);
}

TEST(PmiServer, HostileFenceChangesNothing) {
  PmiServer server(job_of(2, 1));
  server.receive(0, "cmd=barrier_in\n");
  EXPECT_FALSE(server.fence_done(1, "\x01").has_value());
  EXPECT_TRUE(server.pending_fence().has_value());
  EXPECT_EQ(server.fence_done(1, "")->replies.size(), 1U);
}

TEST(PmiServer, LimitsPutsOfTask) {
  PmiServer server(job_of(2, 1));
  const auto put = [&](const std::string& key, std::size_t bytes) {
    return ask(server, 0, "cmd=put key=" + key + " value=" + std::string(bytes, 'v') + "\n");
  };
  EXPECT_EQ(put("k", 896), "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(put("k", 897), "cmd=put_result rc=-1 msg=value_too_long\n");
  EXPECT_EQ(put(std::string(65, 'k'), 1), "cmd=put_result rc=-1 msg=key_too_long\n");
  EXPECT_EQ(put("", 1), "cmd=put_result rc=-1 msg=no_key\n");
  EXPECT_EQ(ask(server, 0, "cmd=put kvsname=x key=a value=b\n"),
            "cmd=put_result rc=-1 msg=kvs_not_found\n");
  std::string answer;
  std::size_t accepted = 0;
  for (int i = 0; i < 1000; ++i) {
    answer = put("k" + std::to_string(i), 890);
    accepted += answer == "cmd=put_result rc=0 msg=success\n" ? 890 : 0;
  }
  EXPECT_EQ(answer, "cmd=put_result rc=-1 msg=too_many_pairs_of_this_task\n");
  EXPECT_LE(accepted, base::limits::kMaxPmiBytesPerTask);
}

TEST(PmiServer, GarbageClosesConnectionAndEndsJob) {
  PmiServer server(job_of(2, 2));
  const auto actions = server.receive(0, "GET / HTTP/1.1\r\ncmd=get_appnum\n");
  ASSERT_EQ(actions.closed, std::vector<std::uint32_t>{0});
  ASSERT_EQ(actions.aborts.size(), 1U);
  EXPECT_EQ(actions.aborts[0].task, 0U);
  EXPECT_EQ(actions.aborts[0].message, "protocol error on its PMI connection: word GET: malformed");
  EXPECT_TRUE(actions.replies.empty());
  EXPECT_TRUE(server.receive(0, "cmd=get_appnum\n").replies.empty());
  EXPECT_EQ(ask(server, 1, "cmd=get_appnum\n"), "cmd=appnum appnum=0\n");
  EXPECT_EQ(server.receive(1, "cmd=dance\n").aborts[0].message,
            "protocol error on its PMI connection: unknown command dance");
}

TEST(PmiServer, CommandInsideBarrierClosesConnection) {
  PmiServer server(job_of(2, 1));
  EXPECT_EQ(server.receive(0, "cmd=barrier_in\ncmd=get_appnum\n").closed.size(), 1U);
}

TEST(PmiServer, AbortCarriesCodeAndMessage) {
  PmiServer server(job_of(2, 1));
  const auto actions = server.receive(0, "cmd=abort exitcode=5 message=a\x1b[2Jb\n");
  ASSERT_EQ(actions.aborts.size(), 1U);
  EXPECT_EQ(actions.aborts[0].code, 5);
  EXPECT_EQ(actions.aborts[0].message, "a\\x1b[2Jb");
  PmiServer other(job_of(2, 1));
  EXPECT_EQ(other.receive(0, "cmd=abort\n").aborts[0].code, 1);
}

TEST(PmiServer, SpawnIsRefusedOnceForAllPrograms) {
  PmiServer server(job_of(2, 1));
  const std::string part = "mcmd=spawn\nnprocs=1\nexecname=./a b\ntotspawns=2\nspawnssofar=";
  EXPECT_TRUE(server.receive(0, part + "1\nendcmd\n").replies.empty());
  const auto actions = server.receive(0, part + "2\nendcmd\n");
  ASSERT_EQ(actions.replies.size(), 1U);
  EXPECT_EQ(actions.replies[0].bytes, "cmd=spawn_result rc=-1 msg=spawn_is_not_supported\n");
  ASSERT_EQ(actions.notes.size(), 1U);
  EXPECT_EQ(actions.notes[0].text, kSpawnIsRefused);
  EXPECT_EQ(ask(server, 0, "cmd=get_appnum\n"), "cmd=appnum appnum=0\n");
}

constexpr const char* kSpawn =
    "mcmd=spawn\nnprocs=2\nexecname=a\ntotspawns=1\nspawnssofar=1\nendcmd\n";

TEST(PmiServer, SpawnIsAnsweredWhenCallerIsDone) {
  auto job = job_of(2, 1);
  job.can_spawn = true;
  PmiServer server(job);
  ask(server, 0, kInit);
  for (const bool is_good : {true, false}) {
    const auto actions = server.receive(0, kSpawn);
    EXPECT_TRUE(actions.replies.empty());
    ASSERT_EQ(actions.spawns.size(), 1U);
    EXPECT_EQ(actions.spawns[0].what.programs[0].tasks(), 2U);
    const auto done = server.spawn_done(0, is_good);
    ASSERT_EQ(done.replies.size(), 1U);
    EXPECT_EQ(done.replies[0].bytes,
              is_good ? "cmd=spawn_result rc=0\n" : "cmd=spawn_result rc=-1 msg=spawn_failed\n");
    EXPECT_TRUE(server.spawn_done(0, true).replies.empty()) << "it no longer waits for an answer";
  }
}

TEST(PmiServer, CommandDuringSpawnClosesConnection) {
  auto job = job_of(2, 1);
  job.can_spawn = true;
  PmiServer server(job);
  ask(server, 0, kInit);
  EXPECT_EQ(server.receive(0, std::string(kSpawn) + "cmd=get_appnum\n").closed.size(), 1U);
  EXPECT_TRUE(server.spawn_done(0, true).replies.empty());
}

TEST(PmiServer, NameRequestsGoToCaller) {
  PmiServer server(job_of(2, 1));
  ask(server, 0, kInit);
  auto actions = server.receive(0, "cmd=publish_name service=s port=p#1\n");
  ASSERT_EQ(actions.names.size(), 1U);
  EXPECT_EQ(actions.names[0].kind, PmiActions::Name::Kind::Publish);
  EXPECT_EQ(actions.names[0].service, "s");
  EXPECT_EQ(actions.names[0].port, "p#1");
  EXPECT_EQ(server.name_done(0, true, "").replies[0].bytes,
            "cmd=publish_result info=ok rc=0 msg=success\n");
  server.receive(0, "cmd=lookup_name service=s\n");
  EXPECT_EQ(server.name_done(0, true, "p#1").replies[0].bytes,
            "cmd=lookup_result info=ok rc=0 msg=success port=p#1\n");
  server.receive(0, "cmd=lookup_name service=t\n");
  EXPECT_EQ(server.name_done(0, false, "").replies[0].bytes,
            "cmd=lookup_result info=failed rc=-1 msg=failed\n");
  EXPECT_EQ(ask(server, 0, "cmd=unpublish_name\n"),
            "cmd=unpublish_result info=failed rc=-1 msg=failed\n");
}

TEST(PmiServer, WorldFindsPutsOfParent) {
  auto job = job_of(1, 1);
  ASSERT_TRUE(proto::append_key_value(job.key_values, "PARENT_ROOT_PORT_NAME", "port"));
  PmiServer server(job);
  EXPECT_EQ(ask(server, 0, "cmd=get kvsname=kvs_1 key=PARENT_ROOT_PORT_NAME\n"),
            "cmd=get_result rc=0 msg=success value=port\n");
}

TEST(PmiServer, RefusedSpawnsAreReportedOnce) {
  PmiServer server(job_of(2, 2));
  const std::string whole =
      "mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=1\nspawnssofar=1\nendcmd\n";
  std::size_t notes = 0;
  for (std::uint32_t turn = 0; turn < 4; ++turn) {
    const auto actions = server.receive(turn % 2, whole);
    ASSERT_EQ(actions.replies.size(), 1U);
    EXPECT_EQ(actions.replies[0].task, turn % 2);
    notes += actions.notes.size();
  }
  EXPECT_EQ(notes, 1U);
}

TEST(PmiServer, RankEndingBeforeFinalizeEndsJob) {
  PmiServer server(job_of(2, 2));
  server.receive(0, kInit);
  server.receive(1, kInit);
  const auto actions = server.task_ended(0, false);
  ASSERT_EQ(actions.aborts.size(), 1U);
  EXPECT_EQ(actions.aborts[0].message, "ended without MPI_Finalize");
  EXPECT_TRUE(server.task_ended(1, true).aborts.empty());  // its exit code ends the job
  PmiServer orderly(job_of(2, 2));
  orderly.receive(0, kInit);
  orderly.receive(0, "cmd=finalize\n");
  EXPECT_TRUE(orderly.task_ended(0, false).aborts.empty());
  EXPECT_TRUE(orderly.receive(1, "cmd=barrier_in\n").aborts.empty());
}

TEST(PmiServer, BarriersSkipEndedTasks) {
  PmiJob job = job_of(3, 3);
  job.keep_going = true;
  PmiServer server(job);
  for (std::uint32_t task = 0; task < 3; ++task) server.receive(task, kInit);
  EXPECT_TRUE(server.receive(0, "cmd=barrier_in\n").replies.empty());
  EXPECT_TRUE(server.task_ended(1, true).replies.empty());  // task 2 is not in
  EXPECT_EQ(server.receive(2, "cmd=barrier_in\n").replies.size(), 2U);
  EXPECT_TRUE(server.receive(0, "cmd=barrier_in\n").replies.empty());
  const auto last = server.task_ended(2, true);  // the one that was waited for
  ASSERT_EQ(last.replies.size(), 1U);
  EXPECT_EQ(last.replies[0].task, 0U);
  EXPECT_EQ(last.replies[0].bytes, "cmd=barrier_out rc=0\n");
}

TEST(PmiServer, FencesOfSeveralNodesSkipEndedTasks) {
  PmiJob job = job_of(4, 2);
  job.keep_going = true;
  PmiServer server(job);
  server.receive(0, kInit);
  server.receive(1, kInit);
  server.receive(0, "cmd=barrier_in\n");
  const auto ended = server.task_ended(1, true);
  ASSERT_TRUE(ended.fence.has_value());
  EXPECT_EQ(ended.fence->sequence, 1U);
  EXPECT_EQ(server.fence_done(1, "")->replies.size(), 1U);
  server.receive(0, "cmd=barrier_in\n");
  EXPECT_FALSE(server.task_ended(0, true).fence.has_value());  // no task of this node waits
}

// Otherwise the other tasks would report its absence before the job is ended.
TEST(PmiServer, BarriersWaitForFailedTaskThatEndsJob) {
  PmiServer server(job_of(2, 2));
  server.receive(0, kInit);
  server.receive(1, kInit);
  server.receive(0, "cmd=barrier_in\n");
  EXPECT_TRUE(server.task_ended(1, true).replies.empty());
}

TEST(PmiServer, RandomBytesAreHandled) {
  std::mt19937 random(4711);
  const std::vector<std::string> pieces{"cmd=",     "put ",
                                        "key=",     "value=",
                                        "\n",       " ",
                                        "get\n",    "mcmd=spawn\n",
                                        "endcmd\n", "barrier_in\n",
                                        "abort ",   "message=",
                                        "\xff",     std::string(1, '\0')};
  for (int round = 0; round < 2000; ++round) {
    PmiServer server(job_of(4, 2));
    for (int i = 0; i < 30; ++i) {
      const auto& piece = pieces[random() % pieces.size()];
      server.receive(static_cast<std::uint32_t>(random() % 2), piece);
      if (random() % 8 == 0) std::ignore = server.fence_done(random() % 3, piece);
    }
    server.task_ended(0, false);
    server.task_ended(1, true);
  }
}

std::string mapping_of(const std::vector<std::uint32_t>& tasks_on_node,
                       base::Distribution distribution = base::Distribution::Block) {
  return process_mapping(base::nodes_of_ranks(tasks_on_node, distribution));
}

TEST(ProcessMapping, JoinsEqualNodes) {
  using Counts = std::vector<std::uint32_t>;
  EXPECT_EQ(mapping_of(Counts{1}), "(vector,(0,1,1))");
  EXPECT_EQ(mapping_of(Counts{2, 2, 2, 2}), "(vector,(0,4,2))");
  EXPECT_EQ(mapping_of(Counts{3, 3, 1, 2}), "(vector,(0,2,3),(2,1,1),(3,1,2))");
  EXPECT_EQ(mapping_of(Counts{2, 0, 2}), "(vector,(0,1,2),(2,1,2))");
  EXPECT_EQ(mapping_of(Counts(16384, 4)), "(vector,(0,16384,4))");
}

TEST(ProcessMapping, DescribesCyclicRanks) {
  using Counts = std::vector<std::uint32_t>;
  const auto cyclic = base::Distribution::Cyclic;
  EXPECT_EQ(mapping_of(Counts{2, 2, 2}, cyclic), "(vector,(0,3,1))");
  EXPECT_EQ(mapping_of(Counts{2, 3}, cyclic), "(vector,(0,2,1),(0,1,1),(1,1,2))");
}

TEST(PmiServer, RestoredServerAnswersAsTheSavedOne) {
  PmiServer saved(job_of(2, 2));
  ask(saved, 0, kInit);
  ask(saved, 0, "cmd=put kvsname=kvs_1 key=a value=1\n");
  ASSERT_TRUE(saved.is_quiet());
  PmiJob other = job_of(2, 2);
  other.name = "kvs_9";
  PmiServer server(other);
  ASSERT_TRUE(server.restore(saved.saved()).has_value());
  EXPECT_EQ(server.saved(), saved.saved());
  EXPECT_EQ(ask(server, 0, "cmd=get kvsname=kvs_1 key=a\n"),
            "cmd=get_result rc=0 msg=success value=1\n");
  EXPECT_TRUE(server.has_joined(0));
  EXPECT_FALSE(server.has_joined(1));
  EXPECT_EQ(server.task_ended(0, false).aborts.size(), 1U);  // it has not finalized
}

TEST(PmiServer, TaskThatWaitsIsNotQuiet) {
  PmiServer server(job_of(2, 2));
  ask(server, 0, kInit);
  server.receive(0, "cmd=barrier_in\n");
  EXPECT_FALSE(server.is_quiet());
  PmiServer other(job_of(2, 2));
  other.receive(1, "cmd=in");
  EXPECT_FALSE(other.is_quiet());
}

TEST(PmiServer, DamagedStateIsRefusedAndChangesNothing) {
  PmiServer server(job_of(2, 2));
  const std::string before = server.saved();
  for (const auto* text : {"", "pmi kvs FF 0", "pmi kvs F 0\n", "pmi kvs FF 9\n", "pmi kvs FF x\n",
                           "pmi kvs FF 0\n\1", "other kvs FF 0\n"}) {
    EXPECT_FALSE(server.restore(text).has_value()) << text;
  }
  EXPECT_EQ(server.saved(), before);
}

}  // namespace
}  // namespace score::shepherd
