// These tests check what commands print: JSON, tables, words, and the front end's output.
#include "base/os/fd.hpp"
#include "scout/commands/dry_run.hpp"
#include "scout/commands/trace_view.hpp"
#include "scout/run/environment.hpp"
#include "scout/run/output_writer.hpp"
#include "scout/run/seen_output.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/text_table.hpp"
#include "scout/session/words.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace score::scout {
namespace {

TEST(TextTable, AlignsAndFillsEmptyCells) {
  TextTable table({{"A"}, {"LONG", Align::Right}});
  table.add({"x", "1"});
  table.add({"", "22"});
  EXPECT_EQ(table.to_text({}), "A  LONG\nx     1\n-    22\n");
  EXPECT_EQ(table.to_text({.with_header = false}), "x   1\n-  22\n");
}

TEST(TextTable, LinesAreCutOnlyForTerminals) {
  TextTable table({{"A"}});
  table.add({"äöü-long"});
  EXPECT_EQ(table.to_text({.with_header = false, .width = 4}), "äöü…\n");
  EXPECT_EQ(table.to_text({.with_header = false, .width = 0}), "äöü-long\n");
}

TEST(TextTable, NamesAreCutBeforeTheLineEnd) {
  TextTable table({{"JOB"}, {.text = "NAME", .may_shrink = true}, {"STATE"}});
  table.add({"1", "a-long-name-of-a-job", "running"});
  table.add({"2", "short", "pending"});
  EXPECT_EQ(table.to_text({.width = 24}),
            "JOB  NAME        STATE\n"
            "1    a-long-na…  running\n"
            "2    short       pending\n");
  EXPECT_EQ(table.to_text({.with_header = false, .width = 14}),
            "1  a-long-…  …\n"
            "2  short     …\n");
}

TEST(TextTable, PaddingOfCellsIsNotColoured) {
  TextTable table({{"STATE"}, {"EXIT", Align::Right}});
  table.add({"failed", "1"}, {Tint::Bad, Tint::None});
  EXPECT_EQ(table.to_text({.with_header = false, .color = true}), "\x1b[31mfailed\x1b[0m  1\n");
  EXPECT_EQ(table.to_text({.with_header = false}), "failed  1\n");
}

TEST(JobPage, FailuresAreListedOnceWithTheirRanks) {
  wire::JobStatus job;
  for (const std::uint32_t rank : {0U, 1U, 2U, 4U, 7U}) {
    auto* exit = job.add_failed_tasks();
    exit->set_rank(rank);
    rank == 4 ? exit->set_code(3) : exit->set_signal(SIGTERM);
  }
  const std::string page = job_page(job);
  EXPECT_NE(page.find("failed  rank 4: exit code 3\n"), page.npos) << page;
  EXPECT_NE(page.find("failed  ranks 0-2,7: SIGTERM\n"), page.npos) << page;
}

TEST(DryRun, PlanIsPrintedInOneLine) {
  wire::Planned planned;
  planned.set_slot(-1);
  planned.add_reasons("held");
  planned.add_reasons("down:\nnode01");
  EXPECT_EQ(plan_line(planned, 1).find('\n'), std::string::npos);
  EXPECT_EQ(plan_line(planned, 1).substr(0, 18), "would wait: held; ");
  planned.set_starts(true);
  planned.set_slot(1);
  planned.set_tasks(3);
  for (const std::uint32_t tasks : {2U, 1U}) {
    planned.add_nodes(tasks == 2 ? "node00" : "node01");
    planned.add_tasks_on_node(tasks);
  }
  EXPECT_EQ(plan_line(planned, 1),
            "would start now in slot 1 on node[00-01]: 3 tasks, 1 to 2 on each node");
  planned.set_tasks_per_core(2);
  EXPECT_TRUE(plan_line(planned, 1).ends_with("on each node; 2 tasks share each core"));
  EXPECT_TRUE(plan_line(planned, 3).ends_with("on each node; 2 tasks share every 3 cores"));
}

TEST(Words, SignalsHaveThreeSpellings) {
  EXPECT_EQ(*parse_signal("TERM"), SIGTERM);
  EXPECT_EQ(*parse_signal("SIGUSR1"), SIGUSR1);
  EXPECT_EQ(*parse_signal("9"), SIGKILL);
  for (const char* bad : {"", "0", "-1", "BOGUS", "999", "SIG"})
    EXPECT_FALSE(parse_signal(bad)) << bad;
}

TEST(Words, UnknownStatesHaveAName) {
  EXPECT_EQ(state_word(2), "running");
  EXPECT_EQ(state_word(4'000'000'000U), "unknown");
}

TEST(Words, NodesAreNumberOrRange) {
  EXPECT_EQ(parse_node_range("4")->least, 4U);
  EXPECT_EQ(parse_node_range("4")->most, 0U);
  EXPECT_EQ(parse_node_range("2-4")->least, 2U);
  EXPECT_EQ(parse_node_range("2-4")->most, 4U);
  EXPECT_EQ(parse_node_range("3-3")->most, 3U);
  for (const char* bad : {"", "0", "0-3", "4-2", "2-", "-2", "2-4-6", "many", "99999999", "+2"})
    EXPECT_FALSE(parse_node_range(bad)) << bad;
}

TEST(Environment, FollowsTheRule) {
  setenv("SCOUT_TEST_ONE", "1", 1);
  const auto has = [](const std::vector<std::string>& entries, const std::string& entry) {
    return std::find(entries.begin(), entries.end(), entry) != entries.end();
  };
  EXPECT_TRUE(has(*exported_environment("ALL", false), "SCOUT_TEST_ONE=1"));
  EXPECT_FALSE(has(*exported_environment("NONE", false), "SCOUT_TEST_ONE=1"));
  EXPECT_TRUE(has(*exported_environment("SCOUT_TEST_ONE,TWO=2", false), "SCOUT_TEST_ONE=1"));
  EXPECT_TRUE(has(*exported_environment("ALL,SCOUT_TEST_ONE=3", false), "SCOUT_TEST_ONE=3"));
  EXPECT_FALSE(exported_environment("ALL,=x", false));
}

TEST(SeenOutput, RepeatedBytesAreCountedPerNode) {
  SeenOutput seen;
  EXPECT_EQ(seen.see({.attempt = 1, .node_index = 0, .offset = 0, .bytes = 10}), 0U);
  EXPECT_EQ(seen.see({.attempt = 1, .node_index = 1, .offset = 0, .bytes = 10}), 0U);
  EXPECT_EQ(seen.see({.attempt = 1, .node_index = 0, .offset = 4, .bytes = 4}), 4U);
  EXPECT_EQ(seen.see({.attempt = 1, .node_index = 0, .offset = 8, .bytes = 4}), 2U);
  EXPECT_EQ(seen.see({.attempt = 1, .node_index = 0, .offset = 12, .bytes = 1}), 0U);
  EXPECT_EQ(seen.see({.attempt = 1, .node_index = 1, .offset = 10, .bytes = 3}), 0U);
}

TEST(SeenOutput, NewAttemptHasNoSeenOutput) {
  SeenOutput seen;
  EXPECT_EQ(seen.see({.attempt = 1, .node_index = 0, .offset = 0, .bytes = 10}), 0U);
  EXPECT_EQ(seen.see({.attempt = 2, .node_index = 0, .offset = 0, .bytes = 10}), 0U);
  EXPECT_EQ(seen.see({.attempt = 1, .node_index = 0, .offset = 0, .bytes = 10}), 10U);
}

TEST(SeenOutput, MessagesOfTheHeadAreAlwaysNew) {
  SeenOutput seen;
  EXPECT_EQ(seen.see({.offset = 0, .bytes = 10}), 0U);
  EXPECT_EQ(seen.see({.offset = 0, .bytes = 10}), 0U);
}

// Redirects standard output to a pipe for as long as it lives.
class CapturedOutput {
 public:
  CapturedOutput() {
    saved_ = dup(STDOUT_FILENO);
    pipe_ = std::move(*make_pipe());
    dup2(pipe_.write.get(), STDOUT_FILENO);
  }

  ~CapturedOutput() { restore(); }

  void close_reader() { pipe_.read.reset(); }

 private:
  void restore() {
    if (saved_ >= 0) dup2(saved_, STDOUT_FILENO);
    if (saved_ >= 0) close(saved_);
    saved_ = -1;
  }

  int saved_ = -1;
  Pipe pipe_;
};

// Returns the written output. A file takes any number of bytes, so one is used here.
std::string written(OutputWriter& output) {
  const UniqueFd file(memfd_create("output", MFD_CLOEXEC));
  const UniqueFd saved(dup(STDOUT_FILENO));
  dup2(file.get(), STDOUT_FILENO);
  while (output.has_output(false)) EXPECT_TRUE(output.write_some(false));
  dup2(saved.get(), STDOUT_FILENO);
  lseek(file.get(), 0, SEEK_SET);
  return read_all(file.get(), std::size_t{64} << 20U).value_or("cannot be read");
}

TEST(OutputWriter, CountsEveryByteOnce) {
  OutputWriter output(OutputStyle::Plain);
  output.pass_rank_0();
  output.take(0, false, "hello ");
  output.take(0, false, "you");
  EXPECT_EQ(output.received(), 9U);
  EXPECT_EQ(output.waiting(), 9U);
  EXPECT_EQ(written(output), "hello you");
  EXPECT_EQ(output.waiting(), 0U);
}

// The head waits for room before it reports the job's end, so dropped bytes are reported too.
TEST(OutputWriter, DroppedBytesAreReported) {
  std::signal(SIGPIPE, SIG_IGN);
  OutputWriter output(OutputStyle::Plain);
  output.take(0, false, "ab\n");
  output.take(1, false, "d\n");
  {
    CapturedOutput captured;
    captured.close_reader();
    EXPECT_FALSE(output.write_some(false));
  }
  EXPECT_EQ(output.waiting(), 0U);
  EXPECT_EQ(output.take_dropped(), 5U);
  EXPECT_EQ(output.take_dropped(), 0U);
}

TEST(OutputWriter, LabelsWholeLinesOfEachRank) {
  OutputWriter output(OutputStyle::Labelled);
  output.take(0, false, "a");
  output.take(1, false, "x\ny");
  output.take(0, false, "b\n");
  output.finish({}, false);
  EXPECT_EQ(written(output), "1: x\n0: ab\n1: y\n");
}

// The head sends pieces of at most 32 KiB and a pipe gives 4 KiB, but lines may be longer.
TEST(OutputWriter, LongLinesOfTwoRanksDoNotMix) {
  for (const auto style : {OutputStyle::Plain, OutputStyle::Labelled}) {
    OutputWriter output(style);
    const std::string first(100'000, 'a');
    const std::string second(50'000, 'b');
    for (std::size_t at = 0; at < first.size(); at += 10'000) {
      output.take(0, false, first.substr(at, 10'000));
      output.take(1, false, second.substr(at / 2, 5'000));
    }
    output.take(1, false, "\n");
    output.take(0, false, "\n");
    const std::string label = style == OutputStyle::Labelled ? "1: " : "";
    const std::string other = style == OutputStyle::Labelled ? "0: " : "";
    EXPECT_TRUE(written(output) == label + second + "\n" + other + first + "\n");
  }
}

TEST(OutputWriter, LongLinesAreWrittenInMarkedPieces) {
  OutputWriter output(OutputStyle::Labelled);
  const std::string most(OutputWriter::kLongestLine, 'x');
  output.take(0, false, most + "\n");
  output.take(0, false, most + "yz\n");
  const std::string text = written(output);
  EXPECT_TRUE(text == "0: " + most + "\n0: " + most + "[...]\n0: [...]yz\n") << text.size();
}

TEST(OutputWriter, UnfinishedLinesAreHeldUpToALimit) {
  OutputWriter output(OutputStyle::Plain);
  const std::size_t each = OutputWriter::kMostHeld / 32;
  for (std::uint32_t rank = 0; rank < 32; ++rank) output.take(rank, false, std::string(each, 'x'));
  EXPECT_EQ(written(output), "");
  output.take(7, false, "y");
  EXPECT_TRUE(written(output) == std::string(each, 'x').append("y[...]\n"));
}

TEST(OutputWriter, UnfinishedLineIsWrittenUnchangedAtTheEnd) {
  OutputWriter output(OutputStyle::Plain);
  output.take(1, false, "no end");
  output.finish({}, false);
  EXPECT_EQ(written(output), "no end");
}

TEST(OutputWriter, PromptsAreShownButNotPartialBlocks) {
  OutputWriter output(OutputStyle::Plain);
  EXPECT_FALSE(output.has_prompts());
  output.take(1, false, std::string(4090, 'x').append("\nhalf "));
  EXPECT_FALSE(output.has_prompts()) << "4096 bytes: a block";
  output.take(0, false, "name? ");
  EXPECT_TRUE(output.has_prompts());
  output.show_prompts();
  output.take(1, false, "line\n");
  EXPECT_TRUE(written(output) == std::string(4090, 'x').append("\nname? half line\n"));
}

TEST(OutputWriter, LabelledTextCountsBeforeItsLineEnds) {
  OutputWriter output(OutputStyle::Labelled);
  output.take(0, false, "no end");
  EXPECT_EQ(written(output), "");
  EXPECT_EQ(output.waiting(), 0U) << "else a window full of one line would block for ever";
}

TEST(OutputWriter, EqualOutputsAreGatheredUnderTheirNodes) {
  OutputWriter output(OutputStyle::Gathered);
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U})
    output.take(rank, false, rank == 1 ? "odd" : "same\n");
  output.finish({"node00", "node01", "node02", "node03"}, false);
  EXPECT_EQ(written(output), "node[00,02-03]:\nsame\nnode01:\nodd\n");
}

TEST(OutputWriter, EqualOutputsAreGatheredAsJson) {
  OutputWriter output(OutputStyle::Json);
  for (const std::uint32_t rank : {0U, 1U, 2U}) output.take(rank, rank == 1, "a\"b\n");
  output.finish({"node00", "node01", "node02"}, false);
  const std::string text = written(output);
  EXPECT_NE(text.find(R"({"nodes": ["node00", "node02"], "stream": "stdout", "text": "a\"b\n"})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"nodes": ["node01"], "stream": "stderr", "text": "a\"b\n"})"),
            std::string::npos)
      << text;
}

TEST(TracePage, SkewIsMeasuredBetweenNodesPerBoundary) {
  wire::Trace trace;
  for (const std::int64_t late : {10'000, 40'000}) {
    auto* node = trace.add_nodes();
    node->set_clock_offset_ns(late == 10'000 ? 0 : 1'000'000'000);
    auto* record = node->add_switches();
    record->set_due_ns(5'000'000'000 - node->clock_offset_ns());
    record->set_stopped_ns(late);
    record->add_left(256);
  }
  EXPECT_NE(trace_page(trace).find("p50     30.0 us"), std::string::npos) << trace_page(trace);
}

void add_switch(wire::NodeTrace& node, std::int64_t due, std::uint64_t entered) {
  auto& record = *node.add_switches();
  record.set_due_ns(due);
  record.set_woke_ns(60'000);
  record.set_stopped_ns(70'000);
  record.set_restored_ns(170'000);
  record.set_done_ns(200'000);
  record.set_slice_ns(1'000'000);
  record.set_busy(entered != 0);
  if (entered != 0) record.add_entered(entered);
}

// The node is idle between the end of its first job and the entry of the next one.
TEST(TracePage, OverheadLeavesOutIdleTime) {
  wire::Trace trace;
  auto& node = *trace.add_nodes();
  add_switch(node, 0, 256);
  add_switch(node, 10'000'000, 512);
  add_switch(node, 20'000'000, 0);
  add_switch(node, 500'000'000, 256);
  add_switch(node, 520'000'000, 512);
  const std::string page = trace_page(trace);
  for (const char* line :
       {"1 node, 4 switches\n", "overhead               1.500 % of the time with a job\n",
        "  its parts, %         wake 0.450 stop 0.075 network 0.750 go 0.225\n",
        "late                   4 of 4: by more than 5 % of the slice\n"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  }
}

}  // namespace
}  // namespace score::scout
