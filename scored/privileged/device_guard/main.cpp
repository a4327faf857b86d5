// scored-device-guard enforces [devices] for the jobs of this node. See README.md.
#include "base/os/cgroup.hpp"
#include "base/os/fd.hpp"
#include "scored/privileged/device_guard/attach.hpp"
#include "scored/privileged/device_guard/device_program.hpp"
#include "scored/shared/config/device_config.hpp"
#include "scored/shared/config/tables.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>

namespace score::device_guard {
namespace {

constexpr const char* kUsage =
    "usage: scored-device-guard [--config FILE] [--cgroup DIR]\n"
    "       scored-device-guard --job DIR DEVICES\n"
    "\n"
    "Lets the jobs of this node open the devices that [devices] of scored.toml allows. The node's\n"
    "unit runs it as root before the daemon starts. With --job, as the launcher runs it, keeps "
    "the\n"
    "processes of one job from opening the devices; DEVICES are \"c195:0 b7:1\".\n"
    "\n"
    "  --config FILE        configuration (default: /etc/scored/scored.toml)\n"
    "  --cgroup DIR         cgroup of the jobs (default: that of scored-jobs.service, or of this "
    "process)\n"
    "  --job DIR            cgroup of the job's tasks\n"
    "  --help               print this help and exit\n"
    "  --version            print the version and exit\n";

struct GuardOptions {
  std::string config = "/etc/scored/scored.toml";
  std::string cgroup;
};

// Returns nothing for wrong arguments.
std::optional<GuardOptions> parse(int argc, char** argv) {
  GuardOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name != "--config" && name != "--cgroup") return std::nullopt;
    (name == "--config" ? options.config : options.cgroup) = argv[i + 1];
  }
  if (argc % 2 == 0) return std::nullopt;
  return options;
}

Result<DeviceAccess> read_table(const std::string& path) {
  auto file = ConfigFile::load_own(path);
  if (!file) return file.error();
  ConfigSection root = file->root();
  DeviceAccess config = read_device_config(root);
  ignore_other_tables(root, {"devices"});
  if (auto sound = file->finish(); !sound) return sound.error();
  return config;
}

std::vector<DeviceRule> resolve_all(const std::vector<std::string>& entries,
                                    std::string_view drivers) {
  std::vector<DeviceRule> rules;
  for (const std::string& entry : entries) {
    const auto found = resolve(entry, drivers);
    if (found.empty()) {
      fmt::print(stderr,
                 "scored-device-guard: [devices] {}: it names no device now; one that comes "
                 "later counts after systemctl restart scored-node\n",
                 entry);
    }
    rules.insert(rules.end(), found.begin(), found.end());
  }
  return rules;
}

Result<std::string> cgroup_of_jobs() {
  auto unit = find_jobs_unit();
  return unit ? unit : own_cgroup();
}

Status guard(const GuardOptions& options) {
  const auto config = read_table(options.config);
  if (!config) return config.error();
  auto cgroup = options.cgroup.empty() ? cgroup_of_jobs() : Result<std::string>(options.cgroup);
  if (!cgroup) return config->restricts() ? Status(cgroup.error()) : Status();
  if (!config->restricts()) return lift(*cgroup);
  const auto drivers = read_file("/proc/devices", 1UL << 20U).value_or("");
  DevicePolicy policy;
  policy.always = basic_devices();
  policy.deny = resolve_all(config->deny, drivers);
  policy.allow = resolve_all(config->allow, drivers);
  policy.otherwise = !config->has_allow;
  const auto done = enforce(*cgroup, make_program(policy), config->text());
  if (done) return done;
  return done.error().with_context(
      "[devices] cannot be put in force here: it needs root, cgroup version 2 and a kernel with "
      "CONFIG_CGROUP_BPF; remove the table from {} to let jobs open all devices",
      options.config);
}

// Returns the cgroup of the whole job: its tasks, its helpers and its shepherd. It has the owner of
// the tasks' one, because the parent of any other cgroup of the node daemon may be the system's.
Result<std::string> job_of(const std::string& tasks) {
  const std::string job = tasks + "/..";

  struct stat inner {};

  struct stat outer {};

  if (stat(tasks.c_str(), &inner) != 0 || stat(job.c_str(), &outer) != 0) {
    return fail(errno_code(errno), "cannot find the job of {}", tasks);
  }
  if (inner.st_uid == outer.st_uid) return job;
  return fail(Errc::Denied, "the parent of {} belongs to user {}", tasks, outer.st_uid);
}

Status guard_job(const std::string& tasks, const std::string& devices) {
  DevicePolicy policy;
  for (const std::string_view word : split(devices, ' ')) {
    const auto rule = parse_rule(word);
    if (!rule) return fail(Errc::Malformed, "'{}' is not a device", escape_terminal(word, 40));
    policy.deny.push_back(*rule);
  }
  const auto job = job_of(tasks);
  auto done = job ? enforce(*job, make_program(policy), "deny " + devices) : Status(job.error());
  if (done) return done;
  return done.error().with_context("the devices of a job cannot be restricted");
}

int report(const Status& done) {
  if (done) return 0;
  fmt::print(stderr, "scored-device-guard: {}\n", done.error().message());
  return 1;
}

}  // namespace
}  // namespace score::device_guard

int main(int argc, char** argv) {
  using namespace score::device_guard;
  const std::string_view first = argc == 2 ? argv[1] : "";
  if (first == "--help") return std::fputs(kUsage, stdout) < 0 ? 1 : 0;
  if (first == "--version") return std::puts("scored " SCORE_VERSION) < 0 ? 1 : 0;
  if (argc == 4 && std::string_view(argv[1]) == "--job") return report(guard_job(argv[2], argv[3]));
  const auto options = parse(argc, argv);
  if (!options) {
    std::fputs("scored-device-guard: unknown arguments (--help explains)\n", stderr);
    return 2;
  }
  return report(guard(*options));
}
