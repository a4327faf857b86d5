// The program's own dynamic linker lists what the program loads, as for ldd(1), because only it
// knows all places where it looks. OFI is available if libfabric is, whether as a separate library,
// inside the MPI library, or behind a plug-in of Open MPI.
#include "scored/job/plan/pm_choice.hpp"

#include "base/errc.hpp"
#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/text.hpp"
#include "scored/job/plan/checks.hpp"
#include "scored/job/plan/elf_needs.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

namespace score::shepherd {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr base::Duration kListLimit = 5s;  // for the dynamic linker, which takes milliseconds
constexpr std::size_t kMaxListBytes = 256UL * 1024;
constexpr std::size_t kMaxLibraryBytes = 256UL << 20U;
constexpr std::size_t kMaxMapsBytes = 4UL << 20U;
constexpr std::size_t kMaxFamily = 64;

// Reads until the end of file, or until the limit of bytes or of time.
std::string read_for_a_while(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  const auto end = base::monotonic_now() + kListLimit;
  while (text.size() < kMaxListBytes && base::monotonic_now() < end) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(kListLimit / 1ms)) <= 0) break;
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// Returns the dynamic linker's list for a program ("      libm.so.6 => /lib/libm.so.6 (0x...)");
// empty if the linker fails.
std::string linker_list(const std::string& linker, const std::string& program, const Plan& plan) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  base::UniqueFd out(ends[0]);
  base::UniqueFd in(ends[1]);
  base::SpawnSpec spec;
  spec.path = linker;
  spec.argv = {linker, "--list", program};
  spec.environment = {plan.spec.env().begin(), plan.spec.env().end()};
  spec.fds = {{in.get(), STDOUT_FILENO}};
  spec.die_with_parent = true;
  auto started = base::spawn(spec);
  if (!started) return "";
  in.reset();
  auto text = read_for_a_while(out.get());
  std::ignore = base::send_signal(started->pidfd.get(), SIGKILL);
  std::ignore = base::reap(started->pidfd.get(), true);
  return text;
}

std::string file_name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

bool contains(const std::string& path, std::string_view text) {
  const auto bytes = base::read_file(path, kMaxLibraryBytes);
  return bytes && bytes->find(text) != bytes->npos;
}

// Returns the folders where Open MPI keeps its plug-ins: openmpi/ next to the library, or
// openmpi/lib/openmpi3/ on Debian.
std::vector<fs::path> plugin_folders(const std::string& library) {
  std::error_code error;
  std::vector<fs::path> folders;
  const auto add_of = [&](const fs::path& parent) {
    for (const auto& entry : fs::directory_iterator(parent, error)) {
      if (entry.path().filename().string().starts_with("openmpi")) folders.push_back(entry.path());
    }
  };
  add_of(fs::canonical(library, error).parent_path());
  const auto outer = folders;
  for (const auto& folder : outer) add_of(folder / "lib");
  return folders;
}

// Returns false if the plug-ins of Open MPI are elsewhere, since nothing is known of them then.
// Debian's library lies among all libraries of the host, whose listing takes 2 ms, so its own place
// is checked first.
bool lacks_ofi_plugin(const std::string& library) {
  std::error_code error;
  bool has_others = false;
  const auto beside = fs::canonical(library, error).parent_path();
  if (fs::exists(beside / "openmpi/lib/openmpi3/mca_mtl_ofi.so", error)) return false;
  for (const auto& folder : plugin_folders(library)) {
    if (fs::exists(folder / "mca_mtl_ofi.so", error)) return false;
    has_others = has_others || fs::exists(folder / "mca_pml_cm.so", error);
  }
  return has_others;
}

bool is_linked_to_mpi(const Plan& plan, const wire::Program& program) {
  const auto path = executable_of(plan.spec, program);
  return path && linked_mpi_of(*path, plan) != MpiLibrary::Unknown;
}

// These libraries, which most programs need, do not load MPI. A program that needs no other is not
// worth the 2 ms that its dynamic linker takes to list everything.
bool is_plain(const std::string& library) {
  constexpr std::array<std::string_view, 16> kPlain{
      "libc.so",        "libm.so",        "libgcc_s.so", "libstdc++.so",
      "libgfortran.so", "libquadmath.so", "libgomp.so",  "libpthread.so",
      "libdl.so",       "librt.so",       "libutil.so",  "ld-linux",
      "libselinux.so",  "libtinfo.so",    "libz.so",     "libcap.so"};
  return std::ranges::any_of(kPlain, [&](auto start) { return library.starts_with(start); });
}

base::Status check_libraries(const Plan& plan) {
  for (const std::uint32_t app : local_apps(plan)) {
    const auto& program = plan.spec.programs(static_cast<int>(app));
    // The library of a script or an interpreter is loaded later, and it is checked then.
    if (!is_linked_to_mpi(plan, program)) continue;
    const auto objection = ofi_objection(libraries_of(*executable_of(plan.spec, program), plan));
    if (objection.empty()) continue;
    return base::fail(base::Errc::Unsupported, "--net=pm: {}", objection);
  }
  return {};
}

// Returns the files that a process has mapped ("7f00-7f01 r--p 0 08:01 42   /lib/libc.so.6").
std::vector<std::string> mapped_files(pid_t pid) {
  std::vector<std::string> paths;
  const auto text = base::read_file(fmt::format("/proc/{}/maps", pid), kMaxMapsBytes);
  if (!text) return paths;
  for (const auto line : base::split(*text, '\n')) {
    const auto slash = line.find('/');
    if (slash == line.npos) continue;
    if (paths.empty() || paths.back() != line.substr(slash)) paths.emplace_back(line.substr(slash));
  }
  return paths;
}

// Returns a process and its descendants, parents first, up to kMaxFamily processes.
std::vector<pid_t> family_of(pid_t first) {
  std::vector<pid_t> family{first};
  for (std::size_t i = 0; i < family.size() && family.size() < kMaxFamily; ++i) {
    const auto path = fmt::format("/proc/{0}/task/{0}/children", family[i]);
    const auto text = base::read_file(path, kMaxListBytes);
    if (!text) continue;
    for (const auto word : base::split(*text, ' ')) {
      if (auto pid = base::parse_number<pid_t>(word)) family.push_back(*pid);
    }
  }
  return family;
}

LoadedMpi mpi_of_process(pid_t pid) {
  for (auto& path : mapped_files(pid)) {
    const auto kind = mpi_library_of({file_name_of(path)});
    const bool is_pmix = file_name_of(path).starts_with("libpmix.so");
    if (kind != MpiLibrary::Unknown && !is_pmix) return {kind, std::move(path)};
  }
  return {};
}

}  // namespace

std::vector<std::string> libraries_of(const std::string& program, const Plan& plan) {
  const auto linker = dynamic_linker(program);
  if (!linker || linker->empty()) return {};
  const auto text = linker_list(*linker, program, plan);
  std::vector<std::string> paths;
  for (const auto line : base::split(text, '\n')) {
    const auto arrow = line.find("=> ");
    if (arrow == line.npos) continue;
    const auto path = line.substr(arrow + 3);
    paths.emplace_back(path.substr(0, path.find(" (")));
  }
  return paths;
}

MpiLibrary linked_mpi_of(const std::string& program, const Plan& plan) {
  const auto needed = needed_libraries(program);
  if (!needed) return MpiLibrary::Unknown;
  const auto direct = mpi_library_of(*needed);
  const bool is_all = direct != MpiLibrary::Unknown || std::ranges::all_of(*needed, is_plain);
  if (is_all || starts_other_programs(program)) return direct;
  std::vector<std::string> names;
  for (const auto& path : libraries_of(program, plan)) names.push_back(file_name_of(path));
  return mpi_library_of(names);
}

bool is_linked_to_mpi(const Plan& plan) {
  const auto apps = local_apps(plan);
  return std::ranges::all_of(apps, [&](std::uint32_t app) {
    return is_linked_to_mpi(plan, plan.spec.programs(static_cast<int>(app)));
  });
}

LoadedMpi mpi_of_task(pid_t task) {
  for (const pid_t pid : family_of(task)) {
    auto mpi = mpi_of_process(pid);
    if (mpi.kind != MpiLibrary::Unknown) return mpi;
  }
  return {};
}

std::size_t count_mpi_processes(pid_t task) {
  const auto family = family_of(task);
  return static_cast<std::size_t>(std::ranges::count_if(
      family, [](pid_t pid) { return mpi_of_process(pid).kind != MpiLibrary::Unknown; }));
}

std::string ofi_objection_of_task(pid_t task) {
  for (const pid_t pid : family_of(task)) {
    auto objection = ofi_objection(mapped_files(pid));
    if (!objection.empty()) return objection;
  }
  return "";
}

std::string ofi_objection(const std::vector<std::string>& libraries) {
  const auto is_ofi = [](const auto& path) {
    return file_name_of(path).starts_with("libfabric.so");
  };
  if (std::ranges::any_of(libraries, is_ofi)) return "";
  const auto mpi = std::ranges::find_if(libraries, [](const auto& path) {
    const auto name = file_name_of(path);
    return name.starts_with("libmpi.so") || name.starts_with("libmpich.so");
  });
  if (mpi == libraries.end()) return "";
  const bool is_open_mpi = mpi_library_of({file_name_of(*mpi)}) == MpiLibrary::OpenMpi;
  if (is_open_mpi && !lacks_ofi_plugin(*mpi)) return "";
  if (contains(*mpi, "FI_PROVIDER_PATH")) return "";
  return fmt::format(
      "{} is built without OFI (libfabric): MPICH with ch4:ofi and Open MPI with mtl/ofi would "
      "work; --net=native runs it on its own transports",
      *mpi);
}

std::string provider_directory() {
  std::error_code ignored;
  const auto here = base::own_directory();
  for (const char* place : {"../lib/libfabric", "../../" SCORE_LIBDIR "/libfabric",
                            "../../lib/" SCORE_MULTIARCH "/libfabric"}) {
    const auto directory = (here / place).lexically_normal();
    if (fs::exists(directory / "libpm-fi.so", ignored)) return directory.string();
  }
  return "";
}

base::Result<std::vector<std::string>> pm_variables(const Plan& plan) {
  const auto directory = provider_directory();
  if (directory.empty()) {
    return base::fail(base::Errc::NotFound,
                      "--net=pm: no libpm-fi.so on this node: install the package libpm-fi1");
  }
  if (auto good = check_libraries(plan); !good) return good.error();
  // PM itself may run over other providers, which MPI must not choose. Each MPI library reads its
  // own variable.
  const auto& below = plan.prepare.ofi_providers();
  std::vector<std::string> variables{"FI_PROVIDER_PATH=" + directory,
                                     "FI_PROVIDER=pm" + (below.empty() ? "" : "," + below),
                                     "MPIR_CVAR_CH4_NETMOD=ofi",
                                     "OMPI_MCA_pml=cm",
                                     "OMPI_MCA_mtl=ofi",
                                     "OMPI_MCA_mtl_ofi_provider_include=pm"};
  // With MPICH 5 on PM, parents and children disagree about which ranks share a node, and their
  // collectives hang.
  if (plan.can_spawn()) variables.emplace_back("MPIR_CVAR_NOLOCAL=1");
  if (plan.can_checkpoint()) variables.emplace_back("PM_NO_WATCHED_CALLS=1");
  return variables;
}

}  // namespace score::shepherd
