// scadm changes a running cluster and prints the trace of its gang switches.
#include "base/limits.hpp"
#include "base/model/settings.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/plain.hpp"
#include "proto/trace/trace_export.hpp"
#include "scout/commands/commands.hpp"
#include "scout/commands/reservations.hpp"
#include "scout/commands/trace_view.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

namespace score::scout {

namespace {

constexpr double kLongestTrace_s = 86'400;  // the nodes keep less

struct AdminOptions {
  CommonOptions common;
  std::string what;  // for set and get: the name of a setting
  std::string value;
  std::vector<std::string> nodes;
  bool all_nodes = false;
  bool removes_nodes = false;
  wire::ManageKeys::What keys = wire::ManageKeys::LIST;
  std::string reason;
  ReserveWords reserve;
  double seconds = 10;
  std::string output;  // file of the trace; empty: standard output
  std::string format;  // text, json or pftrace; empty: from the name of the output
};

void print_json(const char* schema, const char* name, const std::string& text) {
  JsonWriter json;
  json.begin_object().field("schema", schema).field(name, text).end_object();
  print(json.text() + "\n");
}

// Sends a request that is answered by Done and prints its line.
template <class Request>
Result<int> carry_out(HeadLink& head, const AdminOptions& options, const Request& request) {
  const auto done = head.ask<wire::Done>(request);
  if (!done) return done.error();
  if (options.common.json) {
    print_json("scored.done/1", "text", done->text());
  } else if (!done->text().empty()) {
    tell(escape_terminal(done->text()));
  }
  return kExitOk;
}

Result<int> set_value(HeadLink& head, const AdminOptions& options) {
  const auto value = parse_setting(*find_setting(options.what), options.value);
  if (!value) return value.error();
  wire::Set request;
  request.set_name(options.what);
  request.set_value(options.value);
  return carry_out(head, options, request);
}

// Prints the values in force that `set` can change.
Result<int> show_values(HeadLink& head, const AdminOptions& options) {
  const auto info = head.ask<wire::Info>(wire::GetInfo());
  if (!info) return info.error();
  JsonWriter json;
  json.begin_object().field("schema", "scored.settings/1");
  std::string page;
  for (const SettingRule& rule : settings()) {
    if (!options.what.empty() && options.what != rule.name) continue;
    const bool fills = rule.setting == Setting::Fill;
    const std::string value = fills ? fill_words(*info) : setting_text(*info, rule.setting);
    json.field(rule.name, value);
    page += fmt::format("{:<13} {}\n", rule.name, value);
  }
  print(options.common.json ? json.end_object().text() + "\n" : page);
  return kExitOk;
}

// Adds the nodes of the command line to a request that has `nodes`.
template <class Request>
Status add_nodes(const AdminOptions& options, Request& request) {
  for (const auto& word : options.nodes) {
    const auto names = expand_hostlist(word);
    if (!names) return names.error().with_context("node '{}'", escape_terminal(word, 80));
    for (const auto& name : *names) request.add_nodes(name);
  }
  return {};
}

Result<int> change_nodes(HeadLink& head, const AdminOptions& options) {
  wire::ChangeNodes request;
  if (auto added = add_nodes(options, request); !added) return added.error();
  request.set_removes(options.removes_nodes);
  return carry_out(head, options, request);
}

Result<int> drain(HeadLink& head, const AdminOptions& options, bool resume) {
  wire::DrainNodes request;
  if (auto added = add_nodes(options, request); !added) return added.error();
  request.set_reason(options.reason);
  request.set_resume(resume);
  return carry_out(head, options, request);
}

Result<int> reserve(HeadLink& head, const AdminOptions& options) {
  const auto request = make_reserve(options.reserve, wall_now());
  if (!request) return request.error();
  return carry_out(head, options, *request);
}

Result<int> unreserve(HeadLink& head, const AdminOptions& options) {
  wire::Unreserve request;
  request.set_name(options.what);
  return carry_out(head, options, request);
}

Result<int> show_reservations(HeadLink& head, const AdminOptions& options) {
  const auto list = head.ask<wire::ReservationList>(wire::ListReservations());
  if (!list) return list.error();
  print(options.common.json ? reservations_json(*list, wall_now())
                            : reservations_page(*list, options.common, wall_now()));
  return kExitOk;
}

// Returns "first", "2026-11-23 19:01:09" or "revoked".
std::string key_words(const wire::NodeKeyState& state) {
  const auto since = [](std::uint64_t generation) {
    if (generation == 0) return std::string("first");
    return format_wall(WallTime(std::chrono::seconds(generation)));
  };
  std::string words = state.is_revoked() ? "revoked" : since(state.generation());
  if (state.next_generation() != 0) words += ", waiting for scored-setup node";
  if (state.is_of_old_cluster_key()) words += ", of an old cluster key";
  return words;
}

std::string keys_json(const wire::NodeKeyList& list) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.keys/1").key("nodes").begin_array();
  for (const wire::NodeKeyState& state : list.nodes()) {
    json.begin_object();
    json.field("node", state.node()).field("generation", state.generation());
    json.field("next_generation", state.next_generation()).field("revoked", state.is_revoked());
    json.field("old_cluster_key", state.is_of_old_cluster_key());
    if (!state.token().empty()) json.field("token", state.token());
    json.end_object();
  }
  return json.end_array().end_object().text() + "\n";
}

// Tokens are secrets. They are printed because the administrator copies each one to its node, once.
Result<int> manage_keys(HeadLink& head, const AdminOptions& options) {
  wire::ManageKeys request;
  request.set_what(options.keys);
  if (auto added = add_nodes(options, request); !added) return added.error();
  const bool rotates = options.keys == wire::ManageKeys::ROTATE;
  if (rotates && options.all_nodes == !options.nodes.empty()) {
    return fail(Errc::Malformed, "give nodes or --all");
  }
  const auto list = head.ask<wire::NodeKeyList>(request);
  if (!list) return list.error();
  if (options.common.json) {
    print(keys_json(*list));
    return kExitOk;
  }
  if (options.keys != wire::ManageKeys::LIST) {
    tell(rotates
             ? "within an hour, as root, run each line on its node; until then both keys are "
               "accepted:"
             : "the keys are refused from now on; to bring a node back, run its line there as root "
               "within an hour:");
  }
  for (const wire::NodeKeyState& state : list->nodes()) {
    const std::string node = escape_terminal(state.node(), 80);
    if (state.token().empty()) {
      print(fmt::format("{:<16} {}\n", node, key_words(state)));
    } else {
      print(fmt::format("{}: scored-setup node --token {}\n", node,
                        escape_terminal(state.token(), 200)));
    }
  }
  return kExitOk;
}

// Only the address goes to stdout, so that it can be used on a browser's command line.
Result<int> web_login(HeadLink& head, const AdminOptions& options) {
  const auto done = head.ask<wire::Done>(wire::WebLogin());
  if (!done) return done.error();
  if (options.common.json) {
    print_json("scored.login/1", "url", done->text());
    return kExitOk;
  }
  tell("valid once, for one minute:");
  print(escape_terminal(done->text()) + "\n");
  return kExitOk;
}

std::string trace_format(const AdminOptions& options) {
  if (!options.format.empty()) return options.format;
  if (options.output.empty()) return "text";
  return options.output.ends_with(".json") ? "json" : "pftrace";
}

Result<int> show_trace(HeadLink& head, const AdminOptions& options) {
  wire::GetTrace request;
  request.set_since_ns(static_cast<std::int64_t>(options.seconds * 1e9));
  const auto trace = head.ask<wire::Trace>(request);
  if (!trace) return trace.error();
  const std::string format = trace_format(options);
  const std::string text = options.common.json   ? trace_json(*trace)
                           : format == "pftrace" ? proto::trace_perfetto(*trace)
                           : format == "json"    ? proto::trace_chrome(*trace)
                                                 : trace_page(*trace);
  if (options.output.empty()) {
    print(text);
    return kExitOk;
  }
  std::ofstream file(options.output, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    return fail(errno_code(errno), "cannot write {}", escape_terminal(options.output, 200));
  return kExitOk;
}

using Work = Result<int> (*)(HeadLink&, const AdminOptions&);

// Returns the work of the given subcommand; each is one request to the head.
Work chosen_work(const CLI::App& app) {
  if (app.got_subcommand("set")) return set_value;
  if (app.got_subcommand("get")) return show_values;
  if (app.got_subcommand("node")) return change_nodes;
  if (app.got_subcommand("drain")) {
    return [](HeadLink& head, const AdminOptions& options) { return drain(head, options, false); };
  }
  if (app.got_subcommand("resume")) {
    return [](HeadLink& head, const AdminOptions& options) { return drain(head, options, true); };
  }
  if (app.got_subcommand("reserve")) return reserve;
  if (app.got_subcommand("unreserve")) return unreserve;
  if (app.got_subcommand("reservations")) return show_reservations;
  if (app.got_subcommand("reload")) {
    return [](HeadLink& head, const AdminOptions& options) {
      return carry_out(head, options, wire::Reload());
    };
  }
  if (app.got_subcommand("web-login")) return web_login;
  if (app.got_subcommand("key")) return manage_keys;
  if (app.got_subcommand("shutdown")) {
    return [](HeadLink& head, const AdminOptions& options) {
      return carry_out(head, options, wire::Shutdown());
    };
  }
  return show_trace;
}

void add_key_commands(CLI::App& app, AdminOptions& options) {
  auto* key =
      app.add_subcommand("key", "Replace or revoke keys of nodes while jobs run (root only)");
  key->require_subcommand(1);
  key->fallthrough();
  auto* rotate =
      key->add_subcommand("rotate", "Print a command line with which each node fetches a new key");
  rotate->add_option("nodes", options.nodes, "node05 or node[00-07]")->type_name("NODE");
  rotate->add_flag("--all", options.all_nodes, "All nodes of the cluster");
  rotate->callback([&options] { options.keys = wire::ManageKeys::ROTATE; });
  auto* revoke = key->add_subcommand("revoke", "Refuse the keys of nodes from now on");
  revoke->add_option("nodes", options.nodes, "node05 or node[00-07]")
      ->required()
      ->type_name("NODE");
  revoke->callback([&options] { options.keys = wire::ManageKeys::REVOKE; });
  auto* list = key->add_subcommand("list", "Print when each node got its key");
  list->add_option("nodes", options.nodes, "node05 or node[00-07]; all if not given")
      ->type_name("NODE");
}

void add_node_commands(CLI::App& app, AdminOptions& options) {
  auto* node = app.add_subcommand("node", "Add or remove nodes while jobs run (root only)");
  node->require_subcommand(1);
  node->fallthrough();
  auto* add = node->add_subcommand("add", "Add nodes to the cluster");
  add->add_option("nodes", options.nodes, "node05 or node[00-07]")->required()->type_name("NODE");
  auto* remove = node->add_subcommand("remove", "Take drained nodes out of the cluster");
  remove->add_option("nodes", options.nodes, "node05 or node[00-07]")
      ->required()
      ->type_name("NODE");
  remove->callback([&options] { options.removes_nodes = true; });
}

void add_reservation_commands(CLI::App& app, AdminOptions& options) {
  ReserveWords& words = options.reserve;
  auto* reserve = app.add_subcommand("reserve", "Reserve nodes for some users, or for maintenance");
  reserve->add_option("nodes", words.nodes, "node05 or node[00-07]")
      ->required()
      ->type_name("NODES");
  reserve->add_option("start", words.start, "now, 2h, 16:00, 2026-12-01T08:30")
      ->required()
      ->type_name("START");
  reserve->add_option("duration", words.duration, "90m, 2h, 1d; a bare number means minutes")
      ->required()
      ->type_name("DURATION");
  reserve->add_option("users", words.users, "alice,bob; - or maintenance means no user")
      ->required()
      ->type_name("USERS");
  reserve->add_option("--name", words.name, "Name, for scrun --reservation; default: r1, r2 ...")
      ->type_name("NAME");
  reserve
      ->add_option("-A,--accounts", words.accounts,
                   "Also users of these accounts, for jobs of these accounts")
      ->type_name("NAMES");
  reserve->add_option("-m,--reason", words.reason, "Reason, shown by scadm reservations")
      ->type_name("TEXT");
  reserve->add_flag(
      "--end-jobs", words.ends_jobs,
      "End the jobs that still run there at the start; else they delay the reservation");
  auto* unreserve = app.add_subcommand("unreserve", "Remove a reservation");
  unreserve->add_option("name", options.what, "Name, as scadm reservations prints it")
      ->required()
      ->type_name("NAME");
  app.add_subcommand("reservations", "List the reservations, by start");
}

// Returns the words of a sentence as lines that fit a terminal of 80 columns.
std::string wrapped(std::string_view sentence, std::string_view indent) {
  constexpr std::size_t kWidth = 79;
  std::string lines(indent);
  std::size_t used = indent.size();
  for (const auto word : split(sentence, ' ')) {
    const bool is_first = used == indent.size();
    if (used + 1 + word.size() > kWidth) {
      lines += fmt::format("\n{}{}", indent, word);
      used = indent.size() + word.size();
    } else {
      lines += fmt::format("{}{}", is_first ? "" : " ", word);
      used += word.size() + (is_first ? 0 : 1);
    }
  }
  return lines + "\n";
}

// deploy/man/settings.py reads these lines and writes them into the manual pages.
std::string describe_settings() {
  std::string text = "Settings:\n";
  for (const SettingRule& rule : settings()) {
    text += fmt::format("  {} ({}; default {})\n", rule.name, range_of(rule),
                        format_setting(rule, rule.initial));
    text += wrapped(rule.purpose, "      ");
  }
  return text;
}

void add_subcommands(CLI::App& app, AdminOptions& options) {
  app.require_subcommand(1);
  app.fallthrough();
  std::vector<std::string> names;
  for (const SettingRule& rule : settings()) names.emplace_back(rule.name);
  auto* set = app.add_subcommand("set", "Change a setting while jobs run");
  set->footer(describe_settings());
  set->add_option("what", options.what, "Name of the setting")
      ->required()
      ->type_name("SETTING")
      ->check(CLI::IsMember(names));
  set->add_option("value", options.value, "Value, such as 50ms, 4, on or off")
      ->required()
      ->type_name("VALUE");
  auto* get = app.add_subcommand("get", "Print the values in force that set can change");
  get->add_option("what", options.what, "Name of the setting; default: all of them")
      ->type_name("SETTING")
      ->check(CLI::IsMember(names));
  auto* drain = app.add_subcommand("drain", "Start no new jobs on nodes; running jobs continue");
  drain->add_option("nodes", options.nodes, "node05 or node[00-07]")->required()->type_name("NODE");
  drain->add_option("-m,--reason", options.reason, "Reason, shown by scnodes")->type_name("TEXT");
  auto* resume = app.add_subcommand("resume", "Undo drain");
  resume->add_option("nodes", options.nodes, "node05 or node[00-07]")
      ->required()
      ->type_name("NODE");
  add_node_commands(app, options);
  add_reservation_commands(app, options);
  add_key_commands(app, options);
  app.add_subcommand("reload", "Read the configuration again");
  app.add_subcommand("shutdown", "End every job, then the head");
  app.add_subcommand("web-login",
                     "Print an address that logs you in to the dashboard; it works once");
  auto* trace = app.add_subcommand("trace", "Summarize the gang switches of the last seconds");
  trace->add_option("--seconds", options.seconds, "Length of the trace, up to now (10)")
      ->type_name("N")
      ->check(CLI::Range(0.001, kLongestTrace_s));
  trace->add_option("-o,--output", options.output, "Write a file: NAME.pftrace, NAME.json")
      ->type_name("FILE");
  trace->add_option("--format", options.format, "text, pftrace (Perfetto), json (chrome://tracing)")
      ->check(CLI::IsMember({"text", "pftrace", "json"}));
}

// CLI11 reports only that a subcommand is missing, so an unknown one is reported here.
Status check_subcommand(const CLI::App& app, const std::vector<std::string>& args) {
  if (args.empty() || args[0].starts_with('-')) return {};
  std::vector<std::string> known;
  for (const auto* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (each->get_name() == args[0]) return {};
    known.push_back(each->get_name());
  }
  const auto near = nearest_word(args[0], known);
  return fail(Errc::NotFound, "unknown command '{}'{} (try scadm --help)",
              escape_terminal(args[0], 80), near.empty() ? "" : "; did you mean " + near + "?");
}

}  // namespace

int scadm_main(const Invocation& invocation) {
  AdminOptions options;
  CLI::App app;
  describe(app, invocation, "Administers the cluster (operators only)");
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  add_subcommands(app, options);
  if (const auto known = check_subcommand(app, invocation.args); !known) {
    return print_error(invocation, known.error());
  }
  if (const auto code = parse(app, invocation)) return *code;
  const Work work = chosen_work(app);
  return with_head(invocation, options.common, [&](HeadLink& head) { return work(head, options); });
}

}  // namespace score::scout
