// Options and keys are the same words, so one table of setters serves both: the text of an option
// is parsed like the value of the key.
#include "scored/node/config.hpp"

#include "base/config/config.hpp"
#include "base/limits.hpp"
#include "base/os/host_facts.hpp"
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scored/node/memory/swap.hpp"
#include "scored/shared/config/tables.hpp"

#include <algorithm>

namespace score::node {

namespace {

constexpr std::string_view kDefaultFile = "/etc/scored/scored.toml";
constexpr std::string_view kUsage =
    "usage: scored --role=node [--config FILE] [OPTION]...\n"
    "\n"
    "The daemon of a node: connects to the head, has the launcher start jobs, and\n"
    "switches them by the timetable. Options override the table [node] of the file.\n"
    "\n"
    "  --config FILE          configuration (default: /etc/scored/scored.toml; none: no file)\n"
    "  --check-config         check the configuration and exit\n"
    "  --cluster NAME         name of the cluster\n"
    "  --name NAME            name of this node (default: the host's)\n"
    "  --head HOST:PORT       address at which the head listens for nodes\n"
    "  --key-file FILE        this node's key, mode 0600\n"
    "  --run-dir DIR          directory of the shepherds' sockets\n"
    "  --launcher-dir DIR     directory of the launcher's sockets\n"
    "  --login-socket FILE    socket for the commands of this host's users\n"
    "                         (default: commands.sock in the run directory)\n"
    "  --cgroup-root DIR      cgroup2 directory for the jobs; auto, or none\n"
    "  --cores N              cores for jobs (default: those the daemon may use)\n"
    "  --first-core N         first core for jobs, counted from 0 (default: 0)\n"
    "  --confine-cores HOW    on: a job runs only on its cores; or off (default: on)\n"
    "  --memory SIZE          memory for jobs (default: the host's)\n"
    "  --job-memory SIZE      limit of a job that requests none (default: 90 % of the host's)\n"
    "  --job-processes N      limit of a job's processes and threads (default: 10000)\n"
    "  --method HOW           how to stop jobs: auto, freezer or signal\n"
    "  --priority HOW         priority of the switcher: auto or normal\n"
    "  --idle-percent N       a job that uses no more of its slices is idle (default: 1)\n"
    "  --idle-slices N        ... after this many consecutive checks (default: 2)\n"
    "  --control HOW          network between daemons: pm or tls (default: pm)\n"
    "  --log-level LEVEL      error, warning, notice, info or debug\n"
    "  --help                 print this text\n"
    "  --version              print the version\n";

constexpr std::uint32_t kMostProcesses = 4'194'304;  // PID_MAX_LIMIT of Linux

bool is_absolute(std::string_view path) {
  return path.starts_with('/');
}

std::string set_name(std::string& name, std::string_view text) {
  if (!is_host_name(text)) return "letters, digits and '-' only, at most 63";
  name = text;
  return {};
}

std::string set_path(std::string& path, std::string_view text) {
  if (!is_absolute(text)) return "must be an absolute path";
  path = text;
  return {};
}

std::string set_head(NodeConfig& config, std::string_view text) {
  auto endpoint = proto::parse_endpoint(text);
  if (!endpoint) return "must be \"host:port\"";
  config.head = *std::move(endpoint);
  config.heads.clear();
  return {};
}

std::string set_cgroup_root(NodeConfig& config, std::string_view text) {
  if (text != "auto" && text != "none" && !is_absolute(text)) {
    return "must be \"auto\", \"none\" or an absolute path";
  }
  config.cgroup_root = text;
  return {};
}

std::string set_cores(NodeConfig& config, std::string_view text) {
  const auto number = parse_number<std::uint32_t>(text);
  if (!number || *number < 1 || *number > limits::kMaxCoresPerNode) {
    return fmt::format("{} is not between 1 and {}", escape_terminal(text, 40),
                       limits::kMaxCoresPerNode);
  }
  config.cores = *number;
  return {};
}

std::string set_size(Bytes& size, std::string_view text) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes == Bytes(0)) return "must be a size, such as \"16G\"";
  size = *bytes;
  return {};
}

std::string set_memory(NodeConfig& config, std::string_view text) {
  return set_size(config.memory, text);
}

std::string set_method(NodeConfig& config, std::string_view text) {
  if (text == "auto")
    config.method = SwitchMethod::Auto;
  else if (text == "freezer")
    config.method = SwitchMethod::Freezer;
  else if (text == "signal")
    config.method = SwitchMethod::Signal;
  else
    return "use one of auto, freezer, signal";
  return {};
}

std::string set_priority(NodeConfig& config, std::string_view text) {
  if (text == "auto")
    config.priority = PriorityChoice::Auto;
  else if (text == "normal")
    config.priority = PriorityChoice::Normal;
  else
    return "use one of auto, normal";
  return {};
}

std::string set_number(std::uint32_t& number, std::string_view text, std::uint32_t least,
                       std::uint32_t most) {
  const auto read = parse_number<std::uint32_t>(text);
  if (!read || *read < least || *read > most) {
    return fmt::format("{} is not between {} and {}", escape_terminal(text, 40), least, most);
  }
  number = *read;
  return {};
}

std::string set_confine_cores(NodeConfig& config, std::string_view text) {
  if (text != "on" && text != "off") return "use one of on, off";
  config.confine_cores = text == "on";
  return {};
}

std::string set_control(NodeConfig& config, std::string_view text) {
  if (text != "pm" && text != "tls") return "use one of pm, tls";
  config.control_over_pm = text == "pm";
  return {};
}

std::string set_log_level(NodeConfig& config, std::string_view text) {
  const auto level = parse_log_level(text);
  if (!level) return "use one of error, warning, notice, info, debug";
  config.log_level = *level;
  return {};
}

// Returns the fault of the text, or an empty string.
using Setter = std::string (*)(NodeConfig&, std::string_view);

struct ConfigKey {
  std::string_view name;
  Setter set;
};

constexpr ConfigKey kKeys[] = {
    {"cluster", [](NodeConfig& c, std::string_view t) { return set_name(c.cluster, t); }},
    {"name", [](NodeConfig& c, std::string_view t) { return set_name(c.name, t); }},
    {"head", &set_head},
    {"key_file", [](NodeConfig& c, std::string_view t) { return set_path(c.key_file, t); }},
    {"run_dir", [](NodeConfig& c, std::string_view t) { return set_path(c.run_dir, t); }},
    {"launcher_dir", [](NodeConfig& c, std::string_view t) { return set_path(c.launcher_dir, t); }},
    {"login_socket", [](NodeConfig& c, std::string_view t) { return set_path(c.login_socket, t); }},
    {"cgroup_root", &set_cgroup_root},
    {"cores", &set_cores},
    {"first_core",
     [](NodeConfig& c, std::string_view t) {
       return set_number(c.first_core, t, 0, limits::kMaxCoresPerNode - 1);
     }},
    {"confine_cores", &set_confine_cores},
    {"memory", &set_memory},
    {"job_memory", [](NodeConfig& c, std::string_view t) { return set_size(c.job_memory, t); }},
    {"job_processes",
     [](NodeConfig& c, std::string_view t) {
       return set_number(c.job_processes, t, 16, kMostProcesses);
     }},
    {"method", &set_method},
    {"priority", &set_priority},
    {"idle_percent",
     [](NodeConfig& c, std::string_view t) { return set_number(c.idle_percent, t, 1, 50); }},
    {"idle_slices",
     [](NodeConfig& c, std::string_view t) { return set_number(c.idle_slices, t, 1, 100); }},
    {"control", &set_control},
    {"log_level", &set_log_level},
};

void read_key(ConfigSection& section, const ConfigKey& key, NodeConfig& config) {
  if (!section.has(key.name)) return;
  std::string text;
  if (key.name == "cores") {
    section.read(key.name, config.cores, 1U, limits::kMaxCoresPerNode);
    return;
  }
  if (key.name == "first_core") {
    section.read(key.name, config.first_core, 0U, limits::kMaxCoresPerNode - 1);
    return;
  }
  if (key.name == "job_processes") {
    section.read(key.name, config.job_processes, 16U, kMostProcesses);
    return;
  }
  if (key.name.starts_with("idle_")) {
    std::uint32_t number = 0;
    section.read(key.name, number, 1U, 100U);
    text = std::to_string(number);
  } else {
    section.read(key.name, text);
  }
  if (const std::string wrong = key.set(config, text); !wrong.empty()) {
    section.refuse(key.name, wrong);
  }
}

// Returns an empty text if there is no fault.
std::string fault_of_features(const std::vector<std::string>& features) {
  if (features.size() > limits::kMaxNodeFeatures) {
    return fmt::format("more than {}", limits::kMaxNodeFeatures);
  }
  for (const std::string& feature : features) {
    if (!is_host_name(feature)) {
      return fmt::format("'{}' is not a word of letters and digits", escape_terminal(feature, 80));
    }
    if (std::ranges::count(features, feature) > 1) {
      return fmt::format("'{}' is there twice", feature);
    }
  }
  return {};
}

// With two heads, `head` is the first of them until the node knows which one is in charge.
void read_heads(ConfigSection& section, NodeConfig& config) {
  std::vector<std::string> names;
  section.read("heads", names);
  if (names.empty()) return;
  for (const std::string& name : names) {
    if (auto endpoint = proto::parse_endpoint(name)) config.heads.push_back(*std::move(endpoint));
  }
  if (config.heads.size() != 2 || names.size() != 2 || names[0] == names[1]) {
    return section.refuse("heads", "must be two different \"HOST:PORT\"");
  }
  if (section.has("head")) section.refuse("head", "leave it out where there are two heads");
  config.head = config.heads.front();
}

Result<NodeConfig> read_config(Result<ConfigFile> file) {
  if (!file) return file.error();
  NodeConfig config;
  ConfigSection root = file->root();
  ConfigSection section = root.section("node");
  for (const ConfigKey& key : kKeys) read_key(section, key, config);
  read_heads(section, config);
  config.network = read_network_config(root);
  config.devices = read_device_config(root);
  config.generic = read_generic_config(root);
  section.read("features", config.features);
  if (const std::string fault = fault_of_features(config.features); !fault.empty()) {
    section.refuse("features", fault);
  }
  config.pario = read_pario_config(root);
  config.hooks = read_hooks_config(root);
  config.jobs_memory = read_memory_config(root);
  ConfigSection watched = root.section("monitor");
  monitor::read_settings(watched, config.monitor);
  ignore_other_tables(
      root, {"node", "network", "devices", "monitor", "gres", "memory", "pario", "hooks"});
  if (auto sound = file->finish(); !sound) return sound.error();
  return config;
}

// Returns the key of an option: "--key-file" is "key_file".
std::string key_of(std::string_view option) {
  std::string key(option.substr(2));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

struct Option {
  std::string name;  // "--head"
  std::string value;
};

// Accepts both "--name=value" and "--name value".
Result<std::vector<Option>> split_options(const std::vector<std::string>& arguments) {
  std::vector<Option> options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) {
      return fail(Errc::Malformed, "unexpected argument '{}'", escape_terminal(word, 80));
    }
    const auto equals = word.find('=');
    const bool is_flag = word == "--help" || word == "--check-config";
    if (is_flag || equals != word.npos) {
      const auto end = std::min(equals, word.size());
      options.push_back({word.substr(0, end), is_flag ? "" : word.substr(end + 1)});
    } else if (++i < arguments.size()) {
      options.push_back({word, arguments[i]});
    } else {
      return fail(Errc::Malformed, "{} needs a value", escape_terminal(word, 80));
    }
  }
  return options;
}

Status apply(const Option& option, NodeCommandLine& line) {
  if (option.name == "--help") line.help = true;
  if (option.name == "--check-config") line.check_only = true;
  if (option.name == "--role" || option.name == "--config" || line.help) return {};
  if (option.name == "--check-config") return {};
  const std::string name = key_of(option.name);
  const auto* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                 [&](const ConfigKey& known) { return known.name == name; });
  if (key == std::end(kKeys)) {
    return fail(Errc::Malformed, "unknown option {}", escape_terminal(option.name, 80));
  }
  if (const std::string wrong = key->set(line.config, option.value); !wrong.empty()) {
    return fail(Errc::Malformed, "{}: {}", option.name, wrong);
  }
  return {};
}

}  // namespace

std::string_view usage() {
  return kUsage;
}

Result<NodeConfig> parse_config(std::string_view text, const std::string& name) {
  return read_config(ConfigFile::parse(text, name));
}

Result<NodeConfig> load_config(const std::string& path) {
  auto config = read_config(ConfigFile::load_own(path));
  if (config) config->file = path;
  return config;
}

Result<NodeCommandLine> read_command_line(const std::vector<std::string>& arguments) {
  const auto options = split_options(arguments);
  if (!options) return options.error();
  NodeCommandLine line;
  std::string file(kDefaultFile);
  for (const Option& option : *options) {
    if (option.name == "--config") file = option.value;
    if (option.name == "--help") line.help = true;
  }
  if (line.help) return line;
  if (file != "none") {
    auto read = load_config(file);
    if (!read) return read.error();
    line.config = *std::move(read);
  }
  for (const Option& option : *options) {
    if (auto applied = apply(option, line); !applied) return applied.error();
  }
  return line;
}

Status complete(NodeConfig& config) {
  const auto facts = read_host_facts();
  if (!facts) return facts.error();
  if (config.name.empty()) config.name = facts->name;
  if (config.cores == 0) config.cores = static_cast<std::uint32_t>(facts->cores.size());
  config.processors = facts->cores;
  if (config.memory == Bytes(0)) config.memory = facts->memory;
  if (config.login_socket.empty()) config.login_socket = config.run_dir + "/commands.sock";
  if (config.job_memory == Bytes(0)) config.job_memory = Bytes(facts->memory.value() / 10 * 9);
  return {};
}

gang::NodeAgentConfig NodeConfig::for_agent() const {
  gang::NodeAgentConfig out;
  out.info = {.name = name, .cores = cores, .memory = memory};
  out.info.features = features;
  out.info.scratch = pario.capacity;
  out.info.swap = offered_swap(jobs_memory);
  for (const GenericConfig& kind : generic) out.info.generic.push_back(kind.resource);
  return out;
}

}  // namespace score::node
