#include "scout/doctor/verdicts.hpp"

#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "base/units.hpp"
#include "proto/convert/words.hpp"
#include "scout/doctor/pair_verdict.hpp"
#include "scout/doctor/parts.hpp"
#include "scout/doctor/remedies.hpp"
#include "scout/session/words.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <sys/stat.h>

namespace score::scout {
namespace {

constexpr double kClockWarning = 1;  // s, chosen: file times of jobs differ visibly
constexpr double kClockFault = 60;   // s, the same as in scored-setup
constexpr double kGangClock = 0.01;  // s; slices of 100 ms may begin this much apart
constexpr std::int64_t kNotMeasured_ns = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kLeastMemlock = std::uint64_t{64} << 20U;  // for registered memory
constexpr std::uint64_t kLeastShm = std::uint64_t{512}
                                    << 20U;  // chosen: MPICH takes 4 MiB per rank
constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

std::string name_of(const wire::NodeStatus& node) {
  return escape_terminal(node.name(), 80);
}

std::string clean(const std::string& text) {
  return escape_terminal(text, 400);
}

bool is_up(const wire::NodeStatus& node) {
  return node.state() == wire::NodeStatus::UP;
}

std::size_t count_up(const Evidence& evidence) {
  return static_cast<std::size_t>(
      std::count_if(evidence.nodes.nodes().begin(), evidence.nodes.nodes().end(), is_up));
}

// ---- versions -----------------------------------------------------------------------------------

void judge_release(const std::string& node, const std::string& release, const std::string& head,
                   Findings& found) {
  const std::string text = fmt::format("release {}, and the head has {}",
                                       release.empty() ? "unknown (older)" : release, head);
  const std::string remedy =
      node.empty() ? "install the head's release of the commands here"
                   : "install the head's release there (apt install), which restarts its daemons";
  const int distance = release_distance(release, head);
  if (release == head) return;
  const Level level = distance > 1 ? Level::Fault : Level::Warning;
  found.add(level, node, node.empty() ? "these commands have " + text : text, remedy);
}

void check_versions(const Evidence& evidence, Findings& found) {
  const std::string head = clean(evidence.info.version());
  judge_release("", evidence.release, head, found);
  for (const auto& node : evidence.nodes.nodes()) {
    if (is_up(node)) judge_release(name_of(node), clean(node.release()), head, found);
  }
  found.else_ok(
      fmt::format("commands, head and {}: {}", counted(count_up(evidence), "node"), head));
}

// ---- heads
// ----------------------------------------------------------------------------------------

// A cluster with one head has no findings here.
void check_heads(const Evidence& evidence, Findings& found) {
  std::string leader;
  for (const auto& head : evidence.info.heads()) {
    if (head.in_charge()) leader = clean(head.name()) + " is " + clean(proto::state_words(head));
  }
  for (const auto& head : evidence.info.heads()) {
    const std::string name = clean(head.name());
    if (head.in_charge() || head.state() == wire::HeadState::UNKNOWN) continue;
    if (head.state() == wire::HeadState::CURRENT) {
      found.else_ok(fmt::format("{}, {} can take over", leader, name));
    } else {
      found.warn("", fmt::format("{} cannot take over: {}", name, clean(proto::state_words(head))),
                 remedies_for(evidence.info).standby_down);
    }
  }
}

// ---- nodes --------------------------------------------------------------------------------------

void check_nodes(const Evidence& evidence, Findings& found) {
  const Remedies& remedies = remedies_for(evidence.info);
  for (const auto& node : evidence.nodes.nodes()) {
    const auto state = node.state();
    const std::string reason = node.reason().empty() ? "" : ", " + clean(node.reason());
    if (node.drained()) {
      found.warn(name_of(node), "drained" + reason, "scadm resume, when it should take jobs again");
    }
    if (node.key_refused()) {
      const std::string why = clean(node.reason());
      const auto colon = std::min(why.find(": "), why.size());
      found.fault(name_of(node), why.substr(0, colon), why.substr(std::min(colon + 2, why.size())));
    } else if (state == wire::NodeStatus::SUSPECT) {
      found.warn(name_of(node), "no heartbeat" + reason, remedies.node_late);
    } else if (state != wire::NodeStatus::UP) {
      const bool never = node.last_heard_ns() == 0;
      found.fault(name_of(node),
                  never ? "not connected since the head was started" : "down" + reason,
                  remedies.node_down);
    } else if (!node.drained() && !node.reason().empty()) {
      found.fault(name_of(node), clean(node.reason()), "see [network] of its scored.toml");
    }
  }
  const int nodes = evidence.nodes.nodes_size();
  found.else_ok(fmt::format("{} up: the head's TCP port is reached",
                            nodes == 1 ? "1 node is" : fmt::format("{} nodes are", nodes)));
}

void check_control(const Evidence& evidence, Findings& found) {
  for (const auto& node : evidence.nodes.nodes()) {
    const std::string problem = clean(node.control_problem());
    if (!is_up(node) || problem.empty()) continue;
    found.warn(name_of(node), "heartbeats go over TLS, " + problem,
               "admit UDP between the head and the nodes on all ports");
  }
  found.else_ok("the daemons reach each other as configured");
}

// ---- what the daemons say -----------------------------------------------------------------------

void check_clocks(const Evidence& evidence, Findings& found) {
  double most = 0;
  for (const auto& node : evidence.facts->nodes()) {
    const double off = to_seconds(node.ahead_ns());
    const double sure = std::abs(off) - to_seconds(node.ahead_error_ns());
    most = std::max(most, std::abs(off));
    if (sure < kClockWarning) continue;
    found.add(sure < kClockFault ? Level::Warning : Level::Fault, clean(node.name()),
              fmt::format("the clock is {:.1f} s {} the head's", std::abs(off),
                          off > 0 ? "ahead of" : "behind"),
              "set it, for example with timedatectl set-ntp true");
  }
  for (const auto& node : evidence.nodes.nodes()) {
    const double error = to_seconds(node.clock_error_ns());
    if (!is_up(node) || error < kGangClock) continue;
    if (node.clock_error_ns() == kNotMeasured_ns) {
      found.warn(name_of(node), "the distance of its clock is not measured yet",
                 "look again in some seconds");
      continue;
    }
    found.warn(
        name_of(node),
        fmt::format("slices may begin {:.0f} ms late: high latency to the head", error * 1e3),
        "look for load of the node and for loss between it and the head");
  }
  found.else_ok(fmt::format("at most {:.1f} ms from the head's", most * 1e3));
}

constexpr std::string_view kFormerPlace = "/system.slice/scored-node.service";  // ADR 101

void check_cgroups(const Evidence& evidence, Findings& found) {
  const Remedies& remedies = remedies_for(evidence.info);
  std::set<std::string> controllers;
  for (const auto& node : evidence.facts->nodes()) {
    const std::string name = clean(node.name());
    for (const auto& one : node.controllers()) controllers.insert(clean(one));
    if (node.cgroup().empty()) {
      found.warn(name,
                 "no cgroup of version 2 that the daemon may use: jobs are stopped by signals",
                 remedies.no_cgroup);
      continue;
    }
    if (node.cgroup().ends_with(kFormerPlace)) {
      found.warn(name,
                 "jobs run in the unit of the node daemon, as in earlier versions, and its filters "
                 "hold for them",
                 "drain the node, then systemctl restart scored-node there");
    }
    if (!node.limits_memory()) {
      found.warn(name, "the controller memory is not delegated: --mem of jobs is not enforced",
                 remedies.no_memory_controller);
    }
    const auto confinement = node.confinement();
    if (confinement == wire::HostFacts::CONFINED) controllers.insert("cpuset");
    if (confinement == wire::HostFacts::NOT_WANTED) controllers.insert("cpuset (not used)");
    if (confinement == wire::HostFacts::IMPOSSIBLE) {
      found.warn(name,
                 "the controller cpuset is not delegated: tasks can leave the cores of their job",
                 remedies.no_cpuset_controller);
    }
    if (!node.why_no_fill().empty()) {
      found.warn(name, "jobs cannot fill: " + clean(node.why_no_fill()),
                 "delegate the controller cpu, or leave fill off");
    }
  }
  found.else_ok(fmt::format("version 2, delegated; controllers {}", fmt::join(controllers, " ")));
}

void check_priority(const Evidence& evidence, Findings& found) {
  for (const auto& node : evidence.nodes.nodes()) {
    const auto priority = node.switching().priority();
    const bool is_known = priority != wire::Switching::PRIORITY_UNKNOWN;
    if (!is_up(node) || !is_known || priority == wire::Switching::REAL_TIME) continue;
    found.warn(name_of(node),
               fmt::format("the switcher has no real-time priority ({})", proto::word_of(priority)),
               remedies_for(evidence.info).no_priority);
  }
  found.else_ok("the switchers have real-time priority");
}

void check_files(const Evidence& evidence, Findings& found) {
  const auto& head = evidence.facts->head();
  const Remedies& remedies = remedies_for(evidence.info);
  for (const auto& file : head.files()) judge_file({"", head.user(), remedies}, file, found);
  for (const auto& node : evidence.facts->nodes()) {
    const FileOwner owner{clean(node.name()), node.user(), remedies};
    for (const auto& file : node.files()) judge_file(owner, file, found);
  }
  found.else_ok("keys, configuration and sockets have their owners and modes");
}

void check_answers(const Evidence& evidence, Findings& found) {
  for (const auto& node : evidence.facts->silent_nodes()) {
    found.fault(clean(node), "the daemon does not answer",
                remedies_for(evidence.info).node_stopped);
  }
  found.else_ok(fmt::format("{} daemons answer", evidence.facts->nodes_size()));
}

// ---- what the job found -------------------------------------------------------------------------

void check_memlock(const Evidence& evidence, Findings& found) {
  std::uint64_t least = kNoLimit;
  for (const auto& node : evidence.probe->nodes) {
    least = std::min(least, node.memlock);
    if (node.memlock >= kLeastMemlock) continue;
    found.warn(node.name,
               fmt::format("jobs may lock {} of memory", human_bytes(Bytes(node.memlock))),
               remedies_for(evidence.info).low_memlock);
  }
  found.else_ok(least == kNoLimit ? "jobs may lock any amount of memory"
                                  : fmt::format("jobs may lock {}", human_bytes(Bytes(least))));
}

void check_shm(const Evidence& evidence, Findings& found) {
  std::uint64_t least = kNoLimit;
  for (const auto& node : evidence.probe->nodes) {
    if (node.shm == 0) continue;
    least = std::min(least, node.shm);
    if (node.shm >= kLeastShm) continue;
    found.warn(node.name,
               fmt::format("/dev/shm has {}, and MPI libraries may take 4 MB or more per rank",
                           human_bytes(Bytes(node.shm))),
               "mount -o remount,size=1G /dev/shm; for a container, --shm-size=1g");
  }
  if (least == kNoLimit) return found.skip("the nodes do not report their shared memory");
  found.else_ok(fmt::format("/dev/shm has {}", human_bytes(Bytes(least))));
}

std::string mpi_words(const ProbedMpi& mpi) {
  const std::string name = mpi.path.substr(mpi.path.rfind('/') + 1);
  return name + (mpi.objection.empty() ? " (PM)" : " (not PM)");
}

void check_mpi(const Evidence& evidence, Findings& found) {
  std::set<std::string> all;
  for (const auto& node : evidence.probe->nodes) {
    for (const auto& mpi : node.mpis) all.insert(mpi_words(mpi));
  }
  for (const auto& node : evidence.probe->nodes) {
    std::set<std::string> missing = all;
    for (const auto& mpi : node.mpis) missing.erase(mpi_words(mpi));
    if (!missing.empty()) {
      found.warn(node.name, fmt::format("lacks {} of other nodes", fmt::join(missing, ", ")),
                 "install it there: programs that are linked to it do not start");
    }
    if (node.pm.empty()) {
      found.warn(node.name, "libpm.so.1 is missing", "apt install libpm1, for programs of PM");
    }
  }
  found.else_ok(all.empty() ? "no MPI library where the linker looks"
                            : fmt::format("{}", fmt::join(all, ", ")));
}

void check_parts(const Evidence& evidence, Findings& found) {
  judge_parts(*evidence.probe, found);
}

void check_programs(const Evidence& evidence, Findings& found) {
  for (const auto& node : evidence.probe->nodes) {
    for (const auto& path : node.readable_programs) {
      found.warn(node.name, fmt::format("users can read {}, so their tasks can trace it", path),
                 fmt::format("chmod 711 {}", path));
    }
  }
  found.else_ok("tasks can trace no program of the system");
}

void check_pairs(const Evidence& evidence, Findings& found) {
  if (!evidence.with_pairs) return found.skip("not measured: --quick");
  if (!evidence.why_probe_ended.empty()) {
    found.warn("", "not all pairs are measured: " + clean(evidence.why_probe_ended),
               remedies_for(evidence.info).slow_pair);
  }
  judge_pairs(*evidence.probe, remedies_for(evidence.info), found);
}

// ---- the table ----------------------------------------------------------------------------------

enum class Source : std::uint8_t { Head, Daemons, Probe };

struct DoctorCheck {
  const char* name;
  Source source;
  void (*run)(const Evidence&, Findings&);
};

constexpr DoctorCheck kChecks[] = {
    {"versions", Source::Head, check_versions},  {"heads", Source::Head, check_heads},
    {"nodes", Source::Head, check_nodes},        {"answers", Source::Daemons, check_answers},
    {"files", Source::Daemons, check_files},     {"clocks", Source::Daemons, check_clocks},
    {"cgroups", Source::Daemons, check_cgroups}, {"priority", Source::Head, check_priority},
    {"control", Source::Head, check_control},    {"memlock", Source::Probe, check_memlock},
    {"shm", Source::Probe, check_shm},           {"parts", Source::Probe, check_parts},
    {"programs", Source::Probe, check_programs}, {"mpi", Source::Probe, check_mpi},
    {"pairs", Source::Probe, check_pairs},
};

// Returns why the facts of a source are missing; empty if they are available.
std::string missing(const Evidence& evidence, Source source) {
  if (source == Source::Daemons && !evidence.facts) return evidence.why_no_facts;
  if (source == Source::Probe && !evidence.probe) return evidence.why_no_probe;
  return "";
}

}  // namespace

std::vector<Finding> judge(const Evidence& evidence) {
  std::vector<Finding> all;
  for (const DoctorCheck& check : kChecks) {
    Findings found;
    const std::string why = missing(evidence, check.source);
    if (why.empty()) {
      check.run(evidence, found);
    } else {
      found.skip("not checked: " + why);
    }
    for (Finding finding : found.all()) {
      finding.check = check.name;
      all.push_back(std::move(finding));
    }
  }
  return all;
}

void judge_file(const FileOwner& owner, const wire::FileFact& file, Findings& found) {
  const auto& [where, user, remedies] = owner;
  const std::string path = clean(file.path());
  const std::string name = fmt::format("{} {}", proto::word_of(file.role()), path);
  if (!file.problem().empty()) {
    const bool is_launcher = file.role() == wire::FileFact::LAUNCHER_SOCKET;
    return found.fault(
        where, fmt::format("{}: {}", name, clean(file.problem())),
        is_launcher ? remedies.launcher_down : "see scored-setup(8), or restart the daemon");
  }
  const auto wrong_mode = [&](const char* what, const char* right) {
    found.fault(where, fmt::format("{} has mode {:04o}: {}", name, file.mode() & 07777U, what),
                fmt::format("chmod {} {}", right, path));
  };
  const bool is_key = file.role() == wire::FileFact::KEY;
  switch (file.role()) {
    case wire::FileFact::KEY:
      if ((file.mode() & 0077U) != 0) wrong_mode("others can use it", "600");
      break;
    case wire::FileFact::CONFIGURATION:
      if ((file.mode() & 0022U) != 0) wrong_mode("others can change it", "644");
      break;
    case wire::FileFact::COMMAND_SOCKET:
      if ((file.mode() & 0666U) != 0666U) wrong_mode("users cannot connect", "666");
      break;
    case wire::FileFact::LAUNCHER_SOCKET:
      if ((file.mode() & 0077U) != 0) wrong_mode("others can connect", "600");
      break;
    default:  // an older release has no roles
      return found.warn(where,
                        fmt::format("{} is not checked: the daemon has an older release", path),
                        "upgrade it");
  }
  if (file.owner() == user || (file.owner() == 0 && !is_key)) return;
  found.fault(
      where,
      fmt::format("{} belongs to uid {}, and the daemon runs as uid {}", name, file.owner(), user),
      fmt::format("chown {} {}", user, path));
}

int release_distance(std::string_view one, std::string_view other) {
  const auto a = split(one, '.');
  const auto b = split(other, '.');
  if (a.size() != 3 || b.size() != 3 || a[0] != b[0]) return 2;
  const auto x = parse_number<std::uint32_t>(a[1]);
  const auto y = parse_number<std::uint32_t>(b[1]);
  if (!x || !y) return 2;
  const auto apart = *x > *y ? *x - *y : *y - *x;
  return static_cast<int>(std::min<std::uint32_t>(apart, 2));
}

}  // namespace score::scout
