#include "scored/job/pmix/client_env.hpp"

#include "base/os/fd.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sched.h>

namespace score::pmix {

namespace {

constexpr std::string_view kOsc = "OMPI_MCA_osc";
constexpr const char* kDebianParameters = "/etc/openmpi/openmpi-mca-params.conf";
constexpr std::size_t kMaxParametersBytes = 64UL * 1024;

bool is_set(const shepherd::Plan& plan, std::string_view name) {
  return std::ranges::any_of(plan.spec.programs(), [&](const wire::Program& program) {
    return shepherd::find_variable(plan.spec, program, name).has_value();
  });
}

// Debian's configuration of Open MPI 4 excludes the component whose windows work on messages
// (osc = ^ucx,pt2pt), without which MPI_Win_create fails across nodes. Returns the list without
// that exclusion; empty if there is nothing to correct.
std::string window_components() {
  const auto text = base::read_file(kDebianParameters, kMaxParametersBytes);
  if (!text) return "";
  for (const auto line : base::split(*text, '\n')) {
    const auto equals = line.find('=');
    if (equals == line.npos || base::trim(line.substr(0, equals)) != "osc") continue;
    const auto list = base::trim(line.substr(equals + 1));
    if (!list.starts_with('^')) return "";
    std::string kept;
    bool has_excluded = false;
    for (const auto name : base::split(list.substr(1), ',')) {
      has_excluded = has_excluded || base::trim(name) == "pt2pt";
      if (base::trim(name) == "pt2pt") continue;
      kept += fmt::format("{}{}", kept.empty() ? "^" : ",", base::trim(name));
    }
    return has_excluded ? kept : "";
  }
  return "";
}

// Open MPI 4 assumes that it is a single process unless it knows the launcher. The launcher of this
// variable starts through PMIx and binds, as this one does. It and Open MPI 5 keep shared memory in
// files; in the job's own directory these cannot collide with a different job's, and are removed
// with it. With more tasks than processors a waiting rank has to yield to others, as under mpirun.
std::vector<std::string> open_mpi_variables(const shepherd::Plan& plan,
                                            const std::string& directory) {
  std::vector<std::string> out{"JSM_JSRUN_PORT=0",
                               "OMPI_MCA_btl_vader_backing_directory=" + directory,
                               "OMPI_MCA_btl_sm_backing_directory=" + directory};
  if (auto components = window_components(); !components.empty() && !is_set(plan, kOsc)) {
    out.push_back(fmt::format("{}={}", kOsc, components));
  }
  cpu_set_t usable;
  const bool is_known = sched_getaffinity(0, sizeof usable, &usable) == 0;
  if (is_known && plan.local_tasks() > static_cast<std::uint32_t>(CPU_COUNT(&usable))) {
    out.emplace_back("OMPI_MCA_mpi_yield_when_idle=1");
  }
  return out;
}

}  // namespace

// The names are those of libpmix 4 for clients of versions 2 to 5. The values are those that its
// server would choose, because it starts with the same settings (pmix_process.cpp, server.cpp).
std::vector<std::string> client_environment(const shepherd::Plan& plan,
                                            const std::string& directory, std::uint16_t port) {
  auto out = open_mpi_variables(plan, directory);
  const auto add = [&out](std::string_view name, std::string_view value) {
    out.push_back(fmt::format("{}={}", name, value));
  };
  const auto address =
      fmt::format("{}.{};tcp4://127.0.0.1:{}", kServerName, plan.prepare.node_index(), port);
  for (const auto* version : {"2", "21", "3", "4", "41"}) {
    add(fmt::format("PMIX_SERVER_URI{}", version), address);
  }
  add("PMIX_NAMESPACE", plan.key_space());
  add("PMIX_HOSTNAME", plan.prepare.node_name());
  add("PMIX_SERVER_TMPDIR", directory);
  add("PMIX_SYSTEM_TMPDIR", directory);
  add("PMIX_SECURITY_MODE", "native");
  add("PMIX_GDS_MODULE", "hash");
  add("PMIX_BFROP_BUFFER_TYPE", "PMIX_BFROP_BUFFER_NON_DESC");
  add("PMIX_VERSION", SCORE_PMIX_VERSION);
  return out;
}

}  // namespace score::pmix
