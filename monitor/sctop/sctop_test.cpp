#include "monitor/sctop/view.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace score::sctop {
namespace {

constexpr std::string_view kDocument = R"({
  "schema": "scored.stream/1",
  "cluster": {"name": "test", "virtual": true, "quantum_s": 0.1, "slots": 3, "nodes_up": 2,
              "nodes_known": 2, "switches_per_s": 10, "overhead": 0.001,
              "overhead_parts": {"wake": 0.0005, "stop": 0.0001, "network": 0, "go": 0.0004}},
  "nodes": [{"name": "node00", "state": "up"}, {"name": "node01", "state": "down"}],
  "matrix": {"rows": [{"slot": 0, "active": true, "cells": [[7], []]},
                      {"slot": 1, "active": false, "cells": [[8], [8]]}]},
  "jobs": [{"job": 7, "user": "ann", "name": "ring", "state": "running", "nodes": 1, "tasks": 2,
            "slot": 0, "share": 0.5, "scheduled_s": 5, "elapsed_s": 10, "reasons": []},
           {"job": 8, "user": "bob", "name": "pi", "state": "pending", "nodes": 2, "tasks": 4,
            "slot": null, "share": 0, "reasons": ["no free cores"]}],
  "processes": {"columns": ["node", "job", "rank", "pid", "state", "user", "system", "pm",
                            "waited"],
                "rows": [[0, 7, 0, 100, "running", 0.5, 0.25, 0.25],
                         [0, 7, 1, 101, "frozen", 1, 0, null],
                         [1, 8, 0, 102, "running", 0.25, 0, null, 0.5]]},
  "switches": {"phases": {"total": {"p50_s": 1e-5, "p95_s": 5e-5, "max_s": 2e-3}}, "skew": null,
               "late_total": 3}
})";

Model model() {
  return parse_document(kDocument).value();
}

std::string text_of(const std::vector<StyledLine>& lines) {
  std::string text;
  for (const auto& line : lines) {
    for (const auto& span : line) text += span.text;
    text += '\n';
  }
  return text;
}

TEST(Sctop, ShowsMatrixLoadsAndJobs) {
  const auto text = text_of(render(model(), {}, {.lines = 24, .columns = 120}));
  for (const char* part :
       {"quantum 100 ms", "nodes 2/2", "p50 10 us p95 50 us max 2.0 ms", "late 3",
        "overhead 0.100 %: wake 0.050, stop 0.010, network 0.000, go 0.040", "> slot 0",
        "  7   xxxxxx", "node00", "[||||||...........     ]", "ann", "no free cores", "F10"}) {
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
  }
}

TEST(Sctop, SumsUpVolumeServers) {
  const auto read = parse_document(R"({"nodes": [
    {"name": "a", "state": "up", "scratch": {"capacity_bytes": 4096, "reserved_bytes": 2048,
     "volumes": [{"job": 7, "used_bytes": 1024, "written_bytes_per_s": 3072, "read_bytes_per_s": 0,
                  "queue": 2, "down": true}]}},
    {"name": "b", "state": "up", "scratch": {"reserved_bytes": 0, "volumes": null}},
    {"name": "c", "state": "up", "scratch": null}]})");
  ASSERT_TRUE(read);
  const auto text = text_of(render(*read, {}, {.lines = 24, .columns = 120}));
  EXPECT_NE(text.find("scratch used 1K of 2K   written 3K/s   read 0/s   queue 2"), text.npos)
      << text;
  EXPECT_NE(text.find("1 servers down"), text.npos) << text;
}

TEST(Sctop, ShowsIdleAndDeadlockedJobs) {
  for (const std::string activity : {"busy", "idle", "deadlocked"}) {
    const auto read = parse_document(fmt::format(
        R"({{"jobs": [{{"job": 7, "state": "running", "activity": "{}"}}]}})", activity));
    ASSERT_EQ(read->jobs.size(), 1U);
    EXPECT_EQ(read->jobs[0].state, activity == "busy" ? "running" : activity);
    ViewState view;
    view.filter = "idle";
    EXPECT_EQ(listed_jobs(*read, view).size(), activity == "idle" ? 1U : 0U);
  }
}

TEST(Sctop, ShowsWaitsOfTheSelectedJob) {
  Model read = model();
  read.jobs[1].waits = {"rank 0 in MPI_Recv from rank 1, tag 7", "rank 1 in MPI_Barrier"};
  const ScreenSize size{.lines = 24, .columns = 120};
  EXPECT_EQ(text_of(render(read, {}, size)).find("MPI_Recv"), std::string::npos);
  ViewState view;
  view.chosen = 1;
  const auto text = text_of(render(read, view, size));
  EXPECT_LT(text.find("no free cores"), text.find("rank 0 in MPI_Recv from rank 1, tag 7\n"));
  EXPECT_NE(text.find("rank 1 in MPI_Barrier\n"), std::string::npos);
  read.jobs[1].waits.assign(100, "rank 0 in MPI_Recv");
  for (std::size_t lines = 1; lines < 30; ++lines) {
    EXPECT_LE(render(read, view, {.lines = lines, .columns = 80}).size(), lines);
  }
}

TEST(Sctop, ShowsFilledTimeSeparately) {
  const auto read = parse_document(
      R"({"nodes": [{"name": "n"}], "jobs": [{"job": 7, "filled_s": 65, "reasons": []}],
          "processes": {"columns": ["node", "job", "state", "user", "filled"],
                        "rows": [[0, 7, "fill", 0.5, 0.25]]}})");
  const auto lines = render(*read, {}, {.lines = 24, .columns = 120});
  const auto text = text_of(lines);
  EXPECT_NE(text.find("[|||||||||||++++++     ]"), std::string::npos) << text;
  EXPECT_NE(text.find("0:01:05"), std::string::npos) << text;
  for (const auto& line : lines) {
    for (const auto& span : line) {
      EXPECT_TRUE(!span.text.starts_with("|||") || span.style == Style::Faint);
    }
  }
}

TEST(Sctop, ShowsAllJobsOfCellOrMark) {
  Model both = model();
  both.rows[0].cells[0] = {7, 8};
  EXPECT_NE(text_of(render(both, {}, {.lines = 24, .columns = 80})).find(" 7,8  "),
            std::string::npos);
  both.rows[0].cells[0] = {700, 800};
  EXPECT_NE(text_of(render(both, {}, {.lines = 24, .columns = 80})).find(" 700+ "),
            std::string::npos);
}

TEST(Sctop, FirstLineFitsInEightyColumns) {
  ViewState paused;
  paused.paused = true;
  const auto text = text_of(render(model(), paused, {.lines = 24, .columns = 80}));
  const auto first = text.substr(0, text.find('\n'));
  EXPECT_LE(first.size(), 80U);
  for (const char* part : {"PAUSED", "100 ms", "nodes 2/2", "switches/s"}) {
    EXPECT_NE(first.find(part), first.npos) << part << "\n" << first;
  }
}

TEST(Sctop, NeverExceedsTheScreen) {
  for (std::size_t lines = 1; lines < 30; ++lines) {
    for (std::size_t columns = 1; columns < 130; columns += 7) {
      const auto out = render(model(), {}, {.lines = lines, .columns = columns});
      EXPECT_LE(out.size(), lines);
      for (const auto& line : out) EXPECT_LE(text_of({line}).size(), columns + 1);
    }
  }
}

TEST(Sctop, FiltersAndSortsJobs) {
  ViewState view;
  view.filter = "bob";
  ASSERT_EQ(listed_jobs(model(), view).size(), 1U);
  EXPECT_EQ(listed_jobs(model(), view)[0].job, 8);
  view.filter.clear();
  view.sort = SortBy::Share;
  EXPECT_EQ(listed_jobs(model(), view)[0].job, 8);
  view.descending = true;
  EXPECT_EQ(listed_jobs(model(), view)[0].job, 7);
}

TEST(Sctop, KeysWorkAsInHtop) {
  ViewState view;
  press(view, {KeyCode::Text, '/'}, model());
  for (const char c : {'p', 'i'}) press(view, {KeyCode::Text, c}, model());
  press(view, {KeyCode::Enter}, model());
  EXPECT_EQ(view.filter, "pi");
  EXPECT_FALSE(view.paused);
  press(view, {KeyCode::Text, 'p'}, model());
  EXPECT_TRUE(view.paused);
  press(view, {KeyCode::F1}, model());
  EXPECT_TRUE(view.shows_help);
  press(view, {KeyCode::Text, 'q'}, model());
  EXPECT_FALSE(view.done);
  press(view, {KeyCode::Text, 'q'}, model());
  EXPECT_TRUE(view.done);
}

TEST(Sctop, CancelsOnlyAfterConfirmation) {
  ViewState view;
  press(view, {KeyCode::Down}, model());
  EXPECT_EQ(press(view, {KeyCode::F9}, model()).cancel, 0);
  EXPECT_EQ(press(view, {KeyCode::Text, 'n'}, model()).cancel, 0);
  press(view, {KeyCode::Text, 'k'}, model());
  EXPECT_EQ(press(view, {KeyCode::Text, 'y'}, model()).cancel, 8);
  EXPECT_EQ(press(view, {KeyCode::Text, 'y'}, model()).cancel, 0);
}

TEST(Sctop, SelectionStaysInTheList) {
  ViewState view;
  for (int i = 0; i < 5; ++i) press(view, {KeyCode::Down}, model());
  EXPECT_EQ(view.chosen, 1U);
  press(view, {KeyCode::PageUp}, model());
  EXPECT_EQ(view.chosen, 0U);
  press(view, {KeyCode::End}, Model());
  EXPECT_EQ(view.chosen, 0U);
}

TEST(Sctop, RejectsMalformedDocuments) {
  for (const char* text : {"", "{", "[]", "7", "\"x\"", "{\"a\":}", "nul"}) {
    EXPECT_FALSE(parse_document(text)) << text;
  }
  EXPECT_FALSE(parse_document(std::string(100'000, '[')));
}

TEST(Sctop, SurvivesUnexpectedDocuments) {
  std::mt19937 random(1);
  const std::string_view pieces[] = {"null",  "7",  "-1", "1e300",
                                     "\"x\"", "[]", "{}", "[[9999999999]]"};
  for (int turn = 0; turn < 2000; ++turn) {
    std::string text(kDocument);
    for (int change = 0; change < 3; ++change) {
      const auto at = text.find(':', random() % text.size());
      if (at == text.npos) continue;
      const auto end = text.find_first_of(",}]", at);
      text.replace(at + 1, end - at - 1, pieces[random() % std::size(pieces)]);
    }
    if (const auto read = parse_document(text)) {
      EXPECT_LE(render(*read, {}, {.lines = 20, .columns = 80}).size(), 20U);
    }
  }
}

TEST(Sctop, ShowsNoControlCharacters) {
  auto evil = model();
  evil.jobs[0].name = "\x1b[2Jx\n\x07";
  evil.nodes[0].name = "\x1b]0;t\x07";
  for (const auto& line : render(evil, {}, {.lines = 24, .columns = 100})) {
    for (const auto& span : line) {
      for (const char c : span.text) EXPECT_GE(static_cast<unsigned char>(c), 0x20U);
    }
  }
}

}  // namespace
}  // namespace score::sctop
