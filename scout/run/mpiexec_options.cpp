#include "scout/run/mpiexec_options.hpp"

#include "base/limits.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "scout/batch/shell_words.hpp"

#include <algorithm>

namespace score::scout {

namespace {

using Words = std::vector<std::string>;

// --- hosts

struct Hosts {
  Words names;
  std::uint32_t slots = 0;  // per host; 0: not given
};

// Adds one "name", "name:2" or "name slots=2". All hosts must have the same number of slots,
// because scrun places tasks so.
Status add_host(Hosts& hosts, std::string_view name, std::string_view slots) {
  std::uint32_t count = 0;
  if (!slots.empty()) {
    const auto number = parse_number<std::uint32_t>(slots);
    if (!number || *number == 0) {
      return fail(Errc::Malformed, "'{}' is not a number of tasks", escape_terminal(slots, 80));
    }
    count = *number;
  }
  if (name.empty()) return fail(Errc::Malformed, "a host has no name");
  if (!hosts.names.empty() && count != hosts.slots) {
    return fail(Errc::Malformed,
                "the hosts have different numbers of tasks; run them as several programs of one "
                "job, or give each the same");
  }
  hosts.slots = count;
  hosts.names.emplace_back(name);
  return {};
}

// Parses a list such as "a,b:2".
Result<Hosts> hosts_of_list(std::string_view list) {
  Hosts hosts;
  for (const auto item : split(list, ',')) {
    const auto at = item.find(':');
    const auto slots = at == item.npos ? std::string_view() : item.substr(at + 1);
    if (auto added = add_host(hosts, item.substr(0, at), slots); !added) return added.error();
  }
  return hosts;
}

// Parses lines of MPICH ("a:2") and of Open MPI ("a slots=2 max_slots=4").
Result<Hosts> hosts_of_file(const std::string& path) {
  const auto text = read_file(path, limits::kMaxProgramsBytes);
  if (!text) return text.error();
  Hosts hosts;
  for (const auto whole : split(*text, '\n')) {
    const auto line = trim(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    const auto end = line.find_first_of(" \t");
    const auto first = line.substr(0, end);
    const auto at = first.find(':');
    auto slots = at == first.npos ? std::string_view() : first.substr(at + 1);
    for (const auto word : split(end == line.npos ? "" : line.substr(end), ' ')) {
      constexpr std::string_view kSlots = "slots=";
      if (trim(word).starts_with(kSlots)) slots = trim(word).substr(kSlots.size());
    }
    if (auto added = add_host(hosts, first.substr(0, at), slots); !added) return added.error();
  }
  if (hosts.names.empty()) return fail(Errc::Malformed, "the file names no host");
  return hosts;
}

Words options_of(const Hosts& hosts) {
  Words options = {"--nodelist=" + fmt::format("{}", fmt::join(hosts.names, ","))};
  if (hosts.slots > 0) options.push_back(fmt::format("--ntasks-per-node={}", hosts.slots));
  return options;
}

// --- what each option is here

enum class How {
  Value,         // its value is the value of an option of scrun
  Flag,          // becomes an option of scrun
  Seconds,       // as Value, in seconds
  Hosts,         // a list of hosts
  HostFile,      // a file of hosts
  Variable,      // NAME VALUE
  JobVariable,   // NAME VALUE, for all programs
  VariableList,  // names; only these variables are passed
  Bind,          // the unit to bind tasks to
  ConfigFile,
  Refused,
};

struct KnownOption {
  std::string_view words;  // separated by blanks
  How how;
  const char* here;  // scrun's option, or a hint what to use
};

constexpr KnownOption kKnown[] = {
    {" -np --np ", How::Value, "--ntasks"},
    {" -ppn -perhost --perhost -npernode --npernode ", How::Value, "--ntasks-per-node"},
    {" -host -hosts --host --hosts -H ", How::Hosts, ""},
    {" -f -hostfile --hostfile -machinefile --machinefile ", How::HostFile, ""},
    {" -env ", How::Variable, ""},
    {" -genv ", How::JobVariable, ""},
    {" -genvall -envall ", How::Flag, "--export=ALL"},
    {" -genvnone -envnone ", How::Flag, "--export=NONE"},
    {" -genvlist -envlist ", How::VariableList, ""},
    {" -wdir --wdir -wd --wd ", How::Value, "--chdir"},
    {" -configfile --configfile ", How::ConfigFile, ""},
    {" -prepend-rank --prepend-rank -tag-output --tag-output ", How::Flag, "--label"},
    {" -bind-to --bind-to ", How::Bind, ""},
    {" -oversubscribe --oversubscribe ", How::Flag, "--overcommit"},
    {" -help ", How::Flag, "--help"},
    {" -version -V ", How::Flag, "--version"},
    {" -map-by --map-by -rank-by --rank-by ", How::Refused,
     "use -m block or -m cyclic, and --ppn N"},
    {" -mca --mca -gmca --gmca ", How::Refused,
     "set the variable OMPI_MCA_NAME, for example with -genv OMPI_MCA_NAME VALUE"},
    {" -disable-auto-cleanup ", How::Refused, "use --keep-going"},
    {" -outfile-pattern -output-filename --output-filename ", How::Refused,
     "use -o FILE, with %t for the rank"},
    {" -errfile-pattern ", How::Refused, "use -e FILE, with %t for the rank"},
    {" -prepend-pattern ", How::Refused, "use -l, which puts the rank before each line"},
    {" -stdin --stdin ", How::Refused, "use -i RANK, -i all or -i none"},
    {" -timeout --timeout ", How::Seconds, "--wall-time"},
    {" -verbose ", How::Refused, "use -v"},
    {" -allow-run-as-root --allow-run-as-root ", How::Refused, "use --allow-root"},
    {" -print-all-exitcodes ", How::Refused, "score job shows how each task has ended"},
    {" -report-bindings --report-bindings ", How::Refused, "score job shows where each task runs"},
    {" -nolocal --nolocal -skip-launch-node ", How::Refused, "use -x NODE"},
    {" -usize ", How::Refused, "use --spawn N, the number of tasks that may be added"},
    {" -launcher -launcher-exec -rmk -iface -demux -topolib -localhost -nameserver -pmi-port "
     "-order-nodes -enable-x -disable-x -disable-hostname-propagation -prefix --prefix "
     "-bootstrap ",
     How::Refused, "the cluster starts the tasks itself; leave it out"},
    {" -membind -gpus-per-proc ", How::Refused, "memory and devices are not bound; leave it out"},
    {" -profile -info ", How::Refused, "leave it out"},
};

const KnownOption* find_known(std::string_view word) {
  for (const KnownOption& known : kKnown) {
    if (known.words.find(" " + std::string(word) + " ") != known.words.npos) return &known;
  }
  return nullptr;
}

std::size_t values_of(How how) {
  switch (how) {
    case How::Flag:
    case How::Refused:
      return 0;
    case How::Variable:
    case How::JobVariable:
      return 2;
    default:
      return 1;
  }
}

Result<Words> bind_option(const std::string& what) {
  if (what == "none" || what == "core" || what == "socket") return Words{"--cpu-bind=" + what};
  return fail(Errc::Malformed, "'{}': tasks are bound to none, core or socket",
              escape_terminal(what, 80));
}

Status fill(MpiexecOption& option, const KnownOption& known, std::span<const std::string> values) {
  switch (known.how) {
    case How::Value:
      option.options = {fmt::format("{}={}", known.here, values[0])};
      return {};
    case How::Flag:
      option.options = {known.here};
      return {};
    case How::Seconds: {
      const auto seconds = parse_number<std::uint32_t>(values[0]);
      if (!seconds || *seconds == 0) {
        return fail(Errc::Malformed, "'{}' is not a number of seconds",
                    escape_terminal(values[0], 80));
      }
      option.options = {fmt::format("{}={}s", known.here, *seconds)};
      return {};
    }
    case How::Hosts:
    case How::HostFile: {
      const auto hosts =
          known.how == How::Hosts ? hosts_of_list(values[0]) : hosts_of_file(values[0]);
      if (!hosts) return hosts.error();
      option.options = options_of(*hosts);
      return {};
    }
    case How::Variable:
    case How::JobVariable: {
      if (values[0].empty() || values[0].find('=') != std::string::npos) {
        return fail(Errc::Malformed, "expected NAME VALUE");
      }
      auto& variables = known.how == How::Variable ? option.variables : option.job_variables;
      variables = {values[0] + "=" + values[1]};
      return {};
    }
    case How::VariableList:
      option.options = {"--export=" + values[0]};
      return {};
    case How::Bind: {
      auto bind = bind_option(values[0]);
      if (!bind) return bind.error();
      option.options = std::move(*bind);
      return {};
    }
    case How::ConfigFile:
      option.config_file = values[0];
      return {};
    case How::Refused:
      return fail(Errc::Malformed, "an option of mpiexec: {}", known.here);
  }
  return {};
}

}  // namespace

Result<std::optional<MpiexecOption>> read_mpiexec_option(std::span<const std::string> args) {
  const std::string& word = args[0];
  const auto at = word.starts_with("--") ? word.find('=') : word.npos;
  const std::string name = word.substr(0, at);
  const KnownOption* const known = find_known(name);
  if (known == nullptr) return std::optional<MpiexecOption>();
  Words values;
  if (at != word.npos) values.push_back(word.substr(at + 1));
  MpiexecOption option;
  while (values.size() < values_of(known->how)) {
    if (option.words >= args.size()) {
      return fail(Errc::Malformed, "{}: its value is missing", name);
    }
    values.push_back(args[option.words++]);
  }
  if (auto filled = fill(option, *known, values); !filled) {
    return filled.error().with_context("{}", name);
  }
  return std::optional<MpiexecOption>(std::move(option));
}

Result<Words> parse_config_file(std::string_view text) {
  Words words;
  std::size_t number = 0;
  for (const auto line : split(text, '\n')) {
    ++number;
    auto more = shell_words(line);
    if (!more) return more.error().with_context("line {}", number);
    if (more->empty()) continue;
    if (!words.empty()) words.emplace_back(":");
    words.insert(words.end(), more->begin(), more->end());
  }
  if (words.empty()) return fail(Errc::Malformed, "the file names no program");
  return words;
}

Result<Words> timeout_option(const char* text) {
  if (text == nullptr || *text == '\0') return Words();
  const auto seconds = parse_number<std::uint32_t>(text);
  if (!seconds) {
    return fail(Errc::Malformed, "MPIEXEC_TIMEOUT '{}' is not a number of seconds",
                escape_terminal(text, 80));
  }
  if (*seconds == 0) return Words();
  return Words{fmt::format("--wall-time={}s", *seconds)};
}

}  // namespace score::scout
