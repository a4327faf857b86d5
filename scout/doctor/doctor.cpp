// score doctor finds problems of the cluster and prints how to repair them.
#include "scout/doctor/doctor.hpp"

#include "base/text/json_writer.hpp"
#include "scout/doctor/probe_job.hpp"
#include "scout/doctor/this_host.hpp"
#include "scout/doctor/verdicts.hpp"
#include "scout/session/session.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace score::scout {
namespace {

constexpr int kFaults = 1;

struct Examination {
  std::vector<Finding> findings;
  ProbeReport probe;
};

bool has_faults(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings, [](const auto& one) { return one.level == Level::Fault; });
}

Finding no_head(const Error& error, bool is_installed) {
  return {Level::Fault,
          "head",
          {},
          words_of(error),
          (is_installed ? kInstalledRemedies : kOwnRemedies).no_head};
}

Result<Examination> examine_cluster(const CommonOptions& options, const std::string& server,
                                    bool is_quick) {
  auto head = reach_head(options.server, server);
  if (!head) return head.error();
  auto evidence = ask_daemons(*head);
  if (!evidence) return evidence.error();
  evidence->with_pairs = !is_quick;
  run_probe(server, *evidence);
  Examination done{judge(*evidence), {}};
  done.findings.insert(
      done.findings.begin(),
      Finding{Level::Ok, "head", {}, "answers at " + escape_terminal(server, 200), ""});
  if (evidence->probe) done.probe = *std::move(evidence->probe);
  return done;
}

Examination examine(const CommonOptions& options, const std::string& server, bool is_quick) {
  auto cluster = examine_cluster(options, server, is_quick);
  if (cluster) return *std::move(cluster);
  const bool is_installed = server == kDefaultSocket || uses_installed_cluster(options.server);
  Examination done{{no_head(cluster.error(), is_installed)}, {}};
  if (!is_installed) return done;  // this host has files of the installed cluster only
  for (auto& finding : check_this_host(kConfigurationFile))
    done.findings.push_back(std::move(finding));
  return done;
}

std::string to_json(const Examination& done) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.doctor/1");
  json.field("faults", has_faults(done.findings)).key("findings").begin_array();
  for (const auto& one : done.findings) {
    json.begin_object().field("level", level_word(one.level)).field("check", one.check);
    json.list("nodes", one.nodes).field("text", one.text).field("remedy", one.remedy).end_object();
  }
  json.end_array().key("pairs").begin_array();
  for (const auto& pair : done.probe.pairs) {
    json.begin_object().field("from", pair.from).field("to", pair.to);
    json.field("round_trip_ns", pair.round_trip_ns);
    json.field("bytes_per_s", pair.bytes_per_second).end_object();
  }
  return json.end_array().end_object().text() + "\n";
}

std::string to_text(const Examination& done) {
  std::string text;
  for (const auto& one : done.findings) {
    text += fmt::format("{:<8} {:<10} {}\n", level_word(one.level), one.check, one.line());
  }
  return text;
}

}  // namespace

int doctor_main(const Invocation& invocation) {
  CommonOptions options;
  bool is_quick = false;
  CLI::App app;
  describe(app, invocation, "Checks the cluster and prints how to repair each problem");
  add_server_option(app, options);
  add_json_option(app, options);
  app.add_flag("--quick", is_quick, "Do not measure PM between pairs of nodes");
  if (const auto code = parse(app, invocation)) return *code;
  const auto server = find_server(options.server);
  if (!server) return print_error(invocation, server.error());
  const Examination done = examine(options, *server, is_quick);
  print(options.json ? to_json(done) : to_text(done));
  return has_faults(done.findings) ? kFaults : kExitOk;
}

}  // namespace score::scout
