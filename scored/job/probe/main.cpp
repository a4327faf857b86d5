// scored-probe [--no-pairs] prints what a job finds on this node, as lines of facts for `score
// doctor`.
#include "base/model/optional_parts.hpp"
#include "base/text.hpp"
#include "scored/job/plan/pm_choice.hpp"
#include "scored/job/probe/mpi_search.hpp"
#include "scored/job/probe/pair_rounds.hpp"
#include "scored/job/probe/pair_test.hpp"
#include "scored/job/probe/parts_search.hpp"
#include "scored/job/probe/pmi_barrier.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <sys/resource.h>
#include <sys/statvfs.h>

namespace score::probe {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Removes tabs and line ends from words of external origin.
std::string word(const std::string& text) {
  return text.empty() ? "-" : escape_terminal(text, 1000);
}

void print_limits() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
    fmt::print("memlock\t{}\t{}\n", limit.rlim_cur, limit.rlim_max);

  struct statvfs memory {};

  if (statvfs("/dev/shm", &memory) == 0)
    fmt::print("shm\t{}\n", std::uint64_t{memory.f_blocks} * memory.f_frsize);
}

// Returns the release of the library that users' programs would load: the one that the linker
// finds, or the one of this installation, whose provider is in a folder next to it.
std::string installed_pm(const std::string& provider) {
  void* library = dlopen("libpm.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr && !provider.empty()) {
    library = dlopen((provider + "/../libpm.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) return "";
  const auto version = reinterpret_cast<std::uint32_t (*)()>(dlsym(library, "pm_version"));
  const std::uint32_t number = version == nullptr ? 0 : version();
  return fmt::format("{}.{}", number >> 16U, number & 0xffffU);
}

void print_libraries() {
  const std::string provider = shepherd::provider_directory();
  fmt::print("pm\t{}\t{}\n", word(installed_pm(provider)), word(provider));
  for (const auto& part : base::kOptionalParts) {
    fmt::print("part\t{}\t{}\n", part.name, has_part(part.name, provider) ? "here" : "missing");
  }
  for (const auto& path : readable_programs()) fmt::print("readable\t{}\n", word(path));
  const auto folders = library_folders(variable("LD_LIBRARY_PATH"), "/etc/ld.so.conf");
  for (const auto& path : find_mpi(folders)) {
    fmt::print("mpi\t{}\t{}\n", word(path), word(shepherd::ofi_objection({path})));
  }
}

void print_pair(std::uint32_t other, const std::optional<PairFigures>& figures) {
  if (figures) {
    fmt::print("pair\t{}\t{}\t{:.0f}\n", other, figures->round_trip.count(),
               figures->bytes_per_second);
  } else {
    fmt::print("pair\t{}\t-\t0\n", other);
  }
}

// Every rank takes part in every barrier, whatever the state of its network.
Status test_pairs() {
  auto barrier = PmiBarrier::join();
  if (!barrier) return barrier.error();
  pm_context* pm = nullptr;
  if (const int error = pm_open(&pm); error != PM_SUCCESS) {
    fmt::print("network\t{}\n", pm_strerror(error));
    pm = nullptr;
  }
  const auto ranks = parse_number<std::uint32_t>(variable("PMI_SIZE")).value_or(0);
  for (std::uint32_t round = 0; round < round_count(ranks); ++round) {
    if (auto entered = barrier->enter(); !entered) return entered;
    if (pm == nullptr) continue;
    const auto other = partner(pm_self(pm), round, ranks);
    if (!other) continue;
    const auto figures = meet(pm, *other, round);
    if (pm_self(pm) < *other) print_pair(*other, figures);
  }
  if (auto entered = barrier->enter(); !entered) return entered;
  pm_close(pm);
  return barrier->leave();
}

int run(bool with_pairs) {
  fmt::print("node\t{}\t{}\n", word(variable("SCORE_NODENAME")), word(variable("SCORE_RANK")));
  print_limits();
  print_libraries();
  if (!with_pairs) return 0;
  const auto tested = test_pairs();
  if (tested) return 0;
  fmt::print(stderr, "scored-probe: {}\n", tested.error().message());
  return 1;
}

}  // namespace
}  // namespace score::probe

int main(int argc, char** argv) {
  return score::probe::run(argc < 2 || std::string_view(argv[1]) != "--no-pairs");
}
