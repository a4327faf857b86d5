#include "scored/head/api/submission_document.hpp"

#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "base/model/resources.hpp"
#include "base/request/job_keys.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/units.hpp"
#include "monitor/model/json_input.hpp"
#include "proto/documents/request_words.hpp"
#include "proto/documents/words.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace score::head {
namespace {

using monitor::JsonValue;
using Texts = std::vector<std::string>;

// ---- values -------------------------------------------------------------------------------------

Result<std::string> text_of(const JsonValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return fail(Errc::Malformed, "must be a string");
}

Result<Texts> texts_of(const JsonValue& value) {
  if (const auto* list = std::get_if<Texts>(&value)) return *list;
  return fail(Errc::Malformed, "must be an array of strings");
}

Result<bool> boolean_of(const JsonValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return fail(Errc::Malformed, "must be true or false");
}

Result<std::int64_t> whole_of(const JsonValue& value, std::int64_t least, std::int64_t most) {
  const auto* number = std::get_if<double>(&value);
  const bool is_whole = number != nullptr && std::trunc(*number) == *number;
  if (is_whole && *number >= static_cast<double>(least) && *number <= static_cast<double>(most)) {
    return static_cast<std::int64_t>(*number);
  }
  return fail(Errc::Malformed, "must be a whole number from {} to {}", least, most);
}

// A duration is a number of seconds, or text such as "1h30m".
Result<Duration> duration_of(const JsonValue& value) {
  constexpr double kMostSeconds = 9e9;
  if (const auto* number = std::get_if<double>(&value)) {
    if (*number < 0 || *number > kMostSeconds) return fail(Errc::Malformed, "is out of range");
    return Duration(static_cast<Duration::rep>(*number * 1e9));
  }
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return fail(Errc::Malformed, "must be seconds or text such as \"1h30m\"");
  return parse_duration(*text);
}

// A size is a number of bytes, or text such as "2G".
Result<Bytes> size_of(const JsonValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return parse_bytes(*text);
  const auto number = whole_of(value, 0, static_cast<std::int64_t>(monitor::kMaxExactNumber));
  if (!number) return fail(Errc::Malformed, "must be bytes or text such as \"2G\"");
  return Bytes(static_cast<std::uint64_t>(*number));
}

// ---- members ------------------------------------------------------------------------------------

using Read = Status (*)(const JsonValue&, WallTime, wire::Submit&);

struct Member {
  std::string_view name;
  Read read;
};

template <auto Setter>
Status put_text(const JsonValue& value, WallTime, wire::Submit& submit) {
  auto text = text_of(value);
  if (!text) return text.error();
  Setter(submit, *std::move(text));
  return {};
}

template <auto Setter>
Status put_flag(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto flag = boolean_of(value);
  if (!flag) return flag.error();
  Setter(submit, *flag);
  return {};
}

template <auto Setter, std::int64_t Least, std::int64_t Most>
Status put_whole(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto number = whole_of(value, Least, Most);
  if (!number) return number.error();
  Setter(submit, *number);
  return {};
}

template <auto Setter>
Status put_duration(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto duration = duration_of(value);
  if (!duration) return duration.error();
  Setter(submit, duration->count());
  return {};
}

Status put_command(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto words = texts_of(value);
  if (!words) return words.error();
  if (words->empty() || words->front().empty()) return fail(Errc::Malformed, "names no program");
  auto& program = *submit.mutable_spec()->add_programs();
  for (const auto& word : *words) program.add_argv(word);
  return {};
}

Status put_environment(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto entries = texts_of(value);
  if (!entries) return entries.error();
  for (const auto& entry : *entries) {
    const auto equals = entry.find('=');
    if (equals == 0 || equals == entry.npos) return fail(Errc::Malformed, "must have NAME=value");
    submit.mutable_spec()->add_env(entry);
  }
  return {};
}

// The number of nodes is a number, or a range such as "2-4".
Status put_nodes(const JsonValue& value, WallTime, wire::Submit& submit) {
  auto& resources = *submit.mutable_resources();
  if (const auto* text = std::get_if<std::string>(&value)) {
    const auto dash = text->find('-');
    const auto least = parse_number<std::uint32_t>(std::string_view(*text).substr(0, dash));
    const auto most = dash == text->npos
                          ? least
                          : parse_number<std::uint32_t>(std::string_view(*text).substr(dash + 1));
    if (!least || !most || *least == 0 || *least > *most || *most > limits::kMaxNodes) {
      return fail(Errc::Malformed, "must be a number of nodes, or a range such as \"2-4\"");
    }
    resources.set_nodes(*least);
    resources.set_most_nodes(dash == text->npos ? 0 : *most);
    return {};
  }
  const auto number = whole_of(value, 1, limits::kMaxNodes);
  if (!number) return number.error();
  resources.set_nodes(static_cast<std::uint32_t>(*number));
  return {};
}

Status put_node_names(const JsonValue& value, google::protobuf::RepeatedPtrField<std::string>& to) {
  const auto text = text_of(value);
  if (!text) return text.error();
  const auto names = expand_hostlist(*text);
  if (!names) return names.error();
  for (const auto& name : *names) to.Add(std::string(name));
  return {};
}

Status put_constraint(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto text = text_of(value);
  if (!text) return text.error();
  const auto features = parse_constraint(*text);
  if (!features) return features.error();
  for (const auto& feature : *features) submit.mutable_resources()->add_features(feature);
  return {};
}

Status put_generic(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto text = text_of(value);
  if (!text) return text.error();
  const auto generic = parse_generic(*text);
  if (!generic) return generic.error();
  for (const auto& one : *generic) {
    auto& added = *submit.mutable_resources()->add_generic();
    added.set_name(one.name);
    added.set_count(one.count);
    added.set_memory_bytes(one.memory.value());
  }
  return {};
}

Status put_licenses(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto text = text_of(value);
  if (!text) return text.error();
  return proto::parse_license_list(*text, *submit.mutable_resources());
}

// A signal before a limit is text such as "USR1@2m"; "B:" before it means the script alone.
Status put_signal(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto text = text_of(value);
  if (!text) return text.error();
  return proto::parse_limit_signal(*text, *submit.mutable_resources());
}

Status put_switches(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto text = text_of(value);
  if (!text) return text.error();
  return proto::parse_switches(*text, *submit.mutable_resources());
}

Status put_queue(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto text = text_of(value);
  if (!text) return text.error();
  const auto queue = proto::parse_queue(*text);
  if (!queue) return queue.error();
  submit.mutable_resources()->set_queue(static_cast<std::uint32_t>(*queue));
  return {};
}

Status put_memory(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto size = size_of(value);
  if (!size) return size.error();
  if (*size < Bytes(limits::kMiB)) return fail(Errc::Malformed, "is less than 1M");
  submit.mutable_resources()->set_memory_per_node_bytes(size->value());
  return {};
}

Status put_scratch(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto size = size_of(value);
  if (!size) return size.error();
  if (*size < Bytes(limits::kMiB)) return fail(Errc::Malformed, "is less than 1M");
  submit.mutable_resources()->set_scratch_bytes(size->value());
  return {};
}

Status put_requeue(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto flag = boolean_of(value);
  if (!flag) return flag.error();
  const auto chosen = *flag ? Requeue::Yes : Requeue::No;
  submit.mutable_resources()->set_requeue(static_cast<std::uint32_t>(chosen));
  return {};
}

Status put_after(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto text = text_of(value);
  if (!text) return text.error();
  return proto::parse_after(*text, *submit.mutable_conditions());
}

// A moment is in seconds since 1970, or text such as "2h" from now.
Result<std::int64_t> moment_of(const JsonValue& value, WallTime now) {
  constexpr double kMostSeconds = 9e9;
  if (const auto* number = std::get_if<double>(&value)) {
    if (*number < 0 || *number > kMostSeconds) return fail(Errc::Malformed, "is out of range");
    return static_cast<std::int64_t>(*number * 1e9);
  }
  const auto ahead = duration_of(value);
  if (!ahead) return fail(Errc::Malformed, "must be seconds since 1970, or text such as \"2h\"");
  return (now + *ahead).time_since_epoch().count();
}

Status put_begin(const JsonValue& value, WallTime now, wire::Submit& submit) {
  const auto moment = moment_of(value, now);
  if (!moment) return moment.error();
  submit.mutable_conditions()->set_begin_wall_ns(*moment);
  return {};
}

Status put_deadline(const JsonValue& value, WallTime now, wire::Submit& submit) {
  const auto moment = moment_of(value, now);
  if (!moment) return moment.error();
  submit.mutable_conditions()->set_deadline_wall_ns(*moment);
  return {};
}

Status put_mpi(const JsonValue& value, WallTime, wire::Submit& submit) {
  using Spec = wire::LaunchSpec;
  constexpr std::pair<std::string_view, Spec::Mpi> kWords[] = {{"auto", Spec::AUTO},
                                                               {"none", Spec::NONE},
                                                               {"pmi1", Spec::PMI1},
                                                               {"pmix", Spec::PMIX},
                                                               {"both", Spec::BOTH}};
  const auto text = text_of(value);
  if (!text) return text.error();
  for (const auto& [word, mpi] : kWords) {
    if (word != *text) continue;
    submit.mutable_spec()->set_mpi(mpi);
    return {};
  }
  return fail(Errc::Malformed, "must be auto, none, pmi1, pmix or both");
}

Status put_net(const JsonValue& value, WallTime, wire::Submit& submit) {
  const auto text = text_of(value);
  if (!text) return text.error();
  if (*text != "pm" && *text != "native") return fail(Errc::Malformed, "must be pm or native");
  submit.mutable_spec()->set_net(*text == "pm" ? wire::LaunchSpec::PM : wire::LaunchSpec::NATIVE);
  return {};
}

std::string file_of(std::string path) {
  return path == "none" ? "/dev/null" : path;
}

constexpr std::int64_t kMostTasks = limits::kMaxTasksPerJob;

// In alphabetical order, as docs/reference/api.md lists them.
constexpr Member kMembers[] = {
    {"account", put_text<[](auto& s, auto v) { s.mutable_resources()->set_account(v); }>},
    {"after", put_after},
    {"allow_root", put_flag<[](auto& s, bool v) { s.set_allow_root(v); }>},
    {"append_output", put_flag<[](auto& s, bool v) { s.mutable_spec()->set_append_output(v); }>},
    {"array", put_text<[](auto& s, auto v) { s.set_array(v); }>},
    {"begin", put_begin},
    {"command", put_command},
    {"constraint", put_constraint},
    {"cpus_per_task", put_whole<[](auto& s, std::int64_t v) {
       s.mutable_resources()->set_cpus_per_task(static_cast<std::uint32_t>(v));
     },
                                1, limits::kMaxCoresPerNode>},
    {"deadline", put_deadline},
    {"directory", put_text<[](auto& s, auto v) { s.mutable_spec()->set_directory(v); }>},
    {"environment", put_environment},
    {"error", put_text<[](auto& s, auto v) { s.mutable_spec()->set_stderr_path(file_of(v)); }>},
    {"exclude",
     [](const JsonValue& value, WallTime, wire::Submit& submit) {
       return put_node_names(value, *submit.mutable_resources()->mutable_except_nodes());
     }},
    {"gres", put_generic},
    {"hold", put_flag<[](auto& s, bool v) { s.mutable_resources()->set_held(v); }>},
    {"input", put_text<[](auto& s, auto v) { s.mutable_spec()->set_stdin_path(v); }>},
    {"kill_deadlock",
     put_flag<[](auto& s, bool v) { s.mutable_resources()->set_kill_deadlock(v); }>},
    {"kill_on_invalid_dep",
     put_flag<[](auto& s, bool v) { s.mutable_conditions()->set_end_if_never(v); }>},
    {"licenses", put_licenses},
    {"memory", put_memory},
    {"mpi", put_mpi},
    {"name", put_text<[](auto& s, auto v) { s.mutable_spec()->set_job_name(v); }>},
    {"net", put_net},
    {"no_fill", put_flag<[](auto& s, bool v) { s.mutable_resources()->set_no_fill(v); }>},
    {"no_park", put_flag<[](auto& s, bool v) { s.mutable_resources()->set_no_park(v); }>},
    {"nodelist",
     [](const JsonValue& value, WallTime, wire::Submit& submit) {
       return put_node_names(value, *submit.mutable_resources()->mutable_only_nodes());
     }},
    {"nodes", put_nodes},
    {"output", put_text<[](auto& s, auto v) { s.mutable_spec()->set_stdout_path(file_of(v)); }>},
    {"partition", put_text<[](auto& s, auto v) { s.mutable_resources()->set_partition(v); }>},
    {"priority", put_whole<[](auto& s, std::int64_t v) {
       s.mutable_resources()->set_priority(static_cast<std::int32_t>(v));
     },
                           INT32_MIN, INT32_MAX>},
    {"queue", put_queue},
    {"requeue", put_requeue},
    {"reservation", put_text<[](auto& s, auto v) { s.mutable_resources()->set_reservation(v); }>},
    {"scratch", put_scratch},
    {"script", put_text<[](auto& s, auto v) { s.mutable_spec()->set_script(v); }>},
    {"signal", put_signal},
    {"slurm_env", put_flag<[](auto& s, bool v) { s.mutable_spec()->set_slurm_env(v); }>},
    {"switches", put_switches},
    {"tasks", put_whole<[](auto& s, std::int64_t v) {
       s.mutable_resources()->set_tasks(static_cast<std::uint32_t>(v));
     },
                        1, kMostTasks>},
    {"tasks_per_node", put_whole<[](auto& s, std::int64_t v) {
       s.mutable_resources()->set_tasks_per_node(static_cast<std::uint32_t>(v));
     },
                                 1, limits::kMaxTasksPerNode>},
    {"time", put_duration<[](auto& s, std::int64_t v) {
       s.mutable_resources()->set_scheduled_limit_ns(v);
     }>},
    {"wall_time",
     put_duration<[](auto& s, std::int64_t v) { s.mutable_resources()->set_wall_limit_ns(v); }>},
    {"weight", put_whole<[](auto& s, std::int64_t v) {
       s.mutable_resources()->set_weight(static_cast<std::uint32_t>(v));
     },
                         1, limits::kMaxWeight>},
};

const Member* find_member(std::string_view name) {
  for (const Member& member : kMembers) {
    if (member.name == name) return &member;
  }
  return nullptr;
}

Error at(RequestFault& fault, std::string_view field, std::string text) {
  fault.field = field;
  fault.text = std::move(text);
  return fail(Errc::Malformed, "{}", fault.text);
}

// A script runs as a batch job: its only task is on the first node, and its steps use the others.
// Its arguments are the command.
void make_batch(wire::Submit& submit) {
  auto& spec = *submit.mutable_spec();
  submit.mutable_resources()->set_allocation(true);
  spec.set_mpi(wire::LaunchSpec::NONE);
  if (spec.programs().empty()) spec.add_programs()->add_argv("script");
}

void set_defaults(wire::Submit& submit) {
  auto& resources = *submit.mutable_resources();
  auto& spec = *submit.mutable_spec();
  if (!spec.script().empty()) make_batch(submit);
  const bool has_size =
      resources.nodes() > 0 || resources.tasks() > 0 || !resources.only_nodes().empty();
  if (!has_size) resources.set_tasks(1);
  if (resources.cpus_per_task() == 0) resources.set_cpus_per_task(1);
  if (resources.weight() == 0) resources.set_weight(limits::kDefaultWeight);
  spec.set_cpus_per_task(resources.cpus_per_task());
  spec.set_umask(022);
  spec.set_stdin_rank(spec.stdin_path().empty() ? -2 : 0);
  if (spec.stderr_path().empty()) spec.set_stderr_path(spec.stdout_path());
  if (spec.job_name().empty()) {
    const std::string& word = spec.programs(0).argv(0);
    spec.set_job_name(word.substr(word.rfind('/') + 1).substr(0, limits::kMaxJobNameBytes));
  }
  submit.set_detached(true);
}

}  // namespace

Result<wire::Submit> read_submission(std::string_view document, WallTime now, RequestFault& fault) {
  const auto object = monitor::parse_object(document);
  if (!object) return at(fault, "", object.error().context());
  wire::Submit submit;
  submit.mutable_resources()->set_queue(static_cast<std::uint32_t>(Queue::Normal));
  for (const auto& [name, value] : *object) {
    const Member* const member = find_member(name);
    const std::string shown = escape_terminal(name, 80);
    if (member == nullptr) return at(fault, name, fmt::format("unknown member '{}'", shown));
    if (std::holds_alternative<monitor::JsonNull>(value)) continue;
    const auto read = member->read(value, now, submit);
    if (!read) return at(fault, name, fmt::format("{}: {}", shown, read.error().context()));
  }
  if (submit.spec().programs().empty() && submit.spec().script().empty()) {
    return at(fault, "command", "give a command or a script");
  }
  if (!submit.spec().directory().starts_with('/')) {
    return at(fault, "directory", "directory: must be an absolute path");
  }
  set_defaults(submit);
  return submit;
}

namespace {

// Returns the member of a submission that sets what the key names.
std::string member_of(const JobKeyRule& rule) {
  if (rule.key == JobKey::Tasks) return "tasks";
  if (rule.key == JobKey::TasksPerNode) return "tasks_per_node";
  if (rule.key == JobKey::Memory) return "memory";
  std::string name(rule.name);
  std::ranges::replace(name, '-', '_');
  return name;
}

const JobKeyRule* find_key(std::string_view member) {
  for (const JobKeyRule& rule : job_keys()) {
    if (member_of(rule) == member) return &rule;
  }
  return nullptr;
}

bool is_none(const JsonValue& value) {
  const auto* text = std::get_if<std::string>(&value);
  return std::holds_alternative<monitor::JsonNull>(value) || (text != nullptr && *text == "none");
}

std::string changeable_members() {
  std::string names;
  for (const JobKeyRule& rule : job_keys()) names += (names.empty() ? "" : ", ") + member_of(rule);
  return names;
}

}  // namespace

Result<wire::ChangeJob> read_change(std::string_view document, WallTime now, RequestFault& fault) {
  const auto object = monitor::parse_object(document);
  if (!object) return at(fault, "", object.error().context());
  wire::ChangeJob change;
  wire::Submit values;
  for (const auto& [name, value] : *object) {
    const JobKeyRule* const rule = find_key(name);
    const std::string shown = escape_terminal(name, 80);
    if (rule == nullptr) {
      return at(
          fault, name,
          fmt::format("'{}' cannot be changed; the members are {}", shown, changeable_members()));
    }
    change.add_keys(static_cast<std::uint32_t>(rule->key));
    if (rule->may_be_none && is_none(value)) continue;
    const auto read = find_member(name)->read(value, now, values);
    if (!read) return at(fault, name, fmt::format("{}: {}", shown, read.error().context()));
  }
  if (change.keys().empty()) {
    return at(fault, "", "nothing to change; the members are " + changeable_members());
  }
  change.mutable_resources()->Swap(values.mutable_resources());
  change.mutable_conditions()->Swap(values.mutable_conditions());
  change.set_name(values.spec().job_name());
  return change;
}

}  // namespace score::head
