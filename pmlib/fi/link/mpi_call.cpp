// An MPI library is a shared object that defines MPI_Init. Inside the library, functions that call
// one another have any names, or none. The program has called the function of the outermost frame.
#include "pmlib/fi/link/mpi_call.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

namespace score::pm::fi {

namespace {

constexpr std::size_t kMostFrames = 128;
constexpr int kSerialized = 2;  // MPI_THREAD_SERIALIZED of MPICH and of Open MPI

struct Frames {
  std::array<void*, kMostFrames> addresses{};
  std::size_t count = 0;
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* argument) {
  auto& frames = *static_cast<Frames*>(argument);
  int is_before = 0;  // 0: the address may be behind the call, perhaps in the next function
  const std::uintptr_t address = _Unwind_GetIPInfo(context, &is_before) - (is_before != 0 ? 0 : 1);
  frames.addresses[frames.count++] = reinterpret_cast<void*>(address);
  return frames.count < kMostFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// Holds a loaded object, or none.
class Object {
 public:
  explicit Object(const Dl_info& info)
      : base_(info.dli_fbase), handle_(dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {}

  ~Object() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // Returns null if the object does not define the function itself.
  template <class Function>
  Function* find(const char* name) const {
    void* const address = dlsym(handle_ != nullptr ? handle_ : RTLD_DEFAULT, name);
    Dl_info info{};
    const bool is_own =
        address != nullptr && dladdr(address, &info) != 0 && info.dli_fbase == base_;
    return is_own ? reinterpret_cast<Function*>(address) : nullptr;
  }

 private:
  void* base_;
  void* handle_;
};

MpiImplementation library_of(const Object& object) {
  auto* const version = object.find<int(char*, int*)>("PMPI_Get_library_version");
  std::array<char, 8192> text{};  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest
  int length = 0;
  if (version == nullptr || version(text.data(), &length) != 0) return MpiImplementation::Other;
  const std::string_view name(text.data());
  if (name.starts_with("MPICH")) return MpiImplementation::Mpich;
  return name.starts_with("Open MPI") ? MpiImplementation::OpenMpi : MpiImplementation::Other;
}

bool is_alone() {
  struct stat status {};

  // The directory has one entry per thread, and two of its own.
  return stat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
}

// Returns true once MPI_Init has returned. A spawned rank of Open MPI waits for its parent inside
// MPI_Init, and most functions, including MPI_Query_thread, end a process that calls them before.
bool is_initialized(const Object& object) {
  auto* const initialized = object.find<int(int*)>("PMPI_Initialized");
  int flag = 0;
  return initialized != nullptr && initialized(&flag) == 0 && flag != 0;
}

bool may_others_call(const Object& object) {
  if (!is_initialized(object)) return true;
  auto* const query = object.find<int(int*)>("PMPI_Query_thread");
  int provided = kSerialized;
  if (query != nullptr && query(&provided) != 0) provided = kSerialized;
  return provided >= kSerialized && !is_alone();
}

// Returns true if the process has a regular file open beyond the standard streams. Memory without a
// name does not count.
bool has_open_file() {
  DIR* const open = opendir("/proc/self/fd");
  if (open == nullptr) return true;
  bool is_found = false;
  while (const dirent* entry = readdir(open)) {
    const int fd = std::atoi(entry->d_name);  // 0 for "." and ".."

    struct stat status {};

    is_found |= fd > STDERR_FILENO && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
                status.st_nlink > 0;
  }
  closedir(open);
  return is_found;
}

// Finds the outermost frame that lies in an MPI library, and its caller's place.
bool find_outermost(const Frames& frames, Dl_info& outermost, const void*& returns_to) {
  const void* checked = nullptr;
  bool is_mpi = false, is_found = false;
  for (std::size_t i = 0; i < frames.count; ++i) {
    const void* const address = frames.addresses[i];
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) continue;
    if (info.dli_fbase != checked) {
      checked = info.dli_fbase;
      is_mpi = Object(info).find<int(int*, char***)>("MPI_Init") != nullptr;
    }
    if (!is_mpi) continue;
    outermost = info;
    is_found = true;
    returns_to =
        i + 1 < frames.count ? static_cast<std::byte*>(frames.addresses[i + 1]) + 1 : nullptr;
  }
  return is_found;
}

// MPICH, ch4/ofi: the tag has 31 bits where the source goes as data of the completion. The lowest
// bit of the context before them marks the library's own messages. Open MPI, mtl/ofi: the tag has
// 32 bits and is negative for the library's own messages.
constexpr std::uint64_t kMpichTag = (std::uint64_t{1} << 31) - 1;
constexpr std::uint64_t kMpichOwn = std::uint64_t{1} << 31;
constexpr std::uint64_t kOpenMpiTag = 0xffff'ffff, kOpenMpiOwn = 0x8000'0000;

struct WaitingCall {
  std::string_view name;  // without MPI_
  MpiWait wait;
};

constexpr auto kCollective = MpiWait::Collective;

// These functions end only by messages, or use memory. They are sorted by name.
constexpr std::array kWaiting{
    WaitingCall{"Accumulate", MpiWait::Memory},
    WaitingCall{"Allgather", kCollective},
    WaitingCall{"Allgatherv", kCollective},
    WaitingCall{"Allreduce", kCollective},
    WaitingCall{"Alltoall", kCollective},
    WaitingCall{"Alltoallv", kCollective},
    WaitingCall{"Alltoallw", kCollective},
    WaitingCall{"Barrier", kCollective},
    WaitingCall{"Bcast", kCollective},
    WaitingCall{"Cart_create", kCollective},
    WaitingCall{"Comm_create", kCollective},
    WaitingCall{"Comm_create_group", kCollective},
    WaitingCall{"Comm_dup", kCollective},
    WaitingCall{"Comm_split", kCollective},
    WaitingCall{"Compare_and_swap", MpiWait::Memory},
    WaitingCall{"Exscan", kCollective},
    WaitingCall{"Fetch_and_op", MpiWait::Memory},
    WaitingCall{"Gather", kCollective},
    WaitingCall{"Gatherv", kCollective},
    WaitingCall{"Get", MpiWait::Memory},
    WaitingCall{"Get_accumulate", MpiWait::Memory},
    WaitingCall{"Intercomm_create", kCollective},
    WaitingCall{"Intercomm_merge", kCollective},
    WaitingCall{"Mprobe", MpiWait::Receive},
    WaitingCall{"Mrecv", MpiWait::Receive},
    WaitingCall{"Neighbor_allgather", kCollective},
    WaitingCall{"Neighbor_allgatherv", kCollective},
    WaitingCall{"Neighbor_alltoall", kCollective},
    WaitingCall{"Neighbor_alltoallv", kCollective},
    WaitingCall{"Neighbor_alltoallw", kCollective},
    WaitingCall{"Probe", MpiWait::Receive},
    WaitingCall{"Put", MpiWait::Memory},
    WaitingCall{"Raccumulate", MpiWait::Memory},
    WaitingCall{"Recv", MpiWait::Receive},
    WaitingCall{"Reduce", kCollective},
    WaitingCall{"Reduce_scatter", kCollective},
    WaitingCall{"Reduce_scatter_block", kCollective},
    WaitingCall{"Rget", MpiWait::Memory},
    WaitingCall{"Rget_accumulate", MpiWait::Memory},
    WaitingCall{"Rput", MpiWait::Memory},
    WaitingCall{"Rsend", MpiWait::Receive},
    WaitingCall{"Scan", kCollective},
    WaitingCall{"Scatter", kCollective},
    WaitingCall{"Scatterv", kCollective},
    WaitingCall{"Send", MpiWait::Receive},
    WaitingCall{"Sendrecv", MpiWait::Receive},
    WaitingCall{"Sendrecv_replace", MpiWait::Receive},
    WaitingCall{"Ssend", MpiWait::Receive},
    WaitingCall{"Wait", MpiWait::Request},
    WaitingCall{"Waitall", MpiWait::Request},
    WaitingCall{"Waitany", MpiWait::Request},
    WaitingCall{"Waitsome", MpiWait::Request},
    WaitingCall{"Win_allocate", kCollective},
    WaitingCall{"Win_create", kCollective},
    WaitingCall{"Win_fence", kCollective},
    WaitingCall{"Win_free", kCollective},
};

constexpr bool is_before(const WaitingCall& a, const WaitingCall& b) {
  return a.name < b.name;
}

static_assert(std::is_sorted(kWaiting.begin(), kWaiting.end(), is_before), "it is searched");

}  // namespace

MpiWait wait_of(std::string_view name) {
  constexpr std::string_view kPrefix = "MPI_", kLargeCounts = "_c", kWindow = "Win_";
  if (!name.starts_with(kPrefix)) return MpiWait::None;
  name.remove_prefix(kPrefix.size());
  if (name.ends_with(kLargeCounts)) name.remove_suffix(kLargeCounts.size());
  const auto* const found = std::lower_bound(kWaiting.begin(), kWaiting.end(),
                                             WaitingCall{name, MpiWait::None}, is_before);
  if (found != kWaiting.end() && found->name == name) return found->wait;
  return name.starts_with(kWindow) ? MpiWait::Memory : MpiWait::None;
}

MpiCall find_mpi_call() {
  Frames frames;
  _Unwind_Backtrace(add_frame, &frames);
  Dl_info outermost{};
  MpiCall call;
  const bool is_found = find_outermost(frames, outermost, call.returns_to);
  if (!is_found || outermost.dli_sname == nullptr) return {};
  std::string_view name(outermost.dli_sname);
  if (name.starts_with("PMPI_")) name.remove_prefix(1);
  name.copy(call.name.data(), call.name.size() - 1);
  const Object object(outermost);
  call.library = library_of(object);
  call.wait = wait_of(name);
  call.may_others_call = may_others_call(object);
  call.may_end_by_file = call.wait != MpiWait::Request || has_open_file();
  return call;
}

TagFilter own_receives(MpiImplementation library) {
  if (library == MpiImplementation::Mpich) return {kMpichOwn, kMpichOwn};
  if (library == MpiImplementation::OpenMpi) return {kOpenMpiOwn, kOpenMpiOwn};
  return {0, 1};
}

std::int64_t mpi_tag(MpiImplementation library, std::uint64_t tag, std::uint64_t ignore) {
  const bool is_mpich = library == MpiImplementation::Mpich;
  if (!is_mpich && library != MpiImplementation::OpenMpi) return -1;
  const std::uint64_t mask = is_mpich ? kMpichTag : kOpenMpiTag;
  if ((ignore & mask) != 0 || (tag & (is_mpich ? kMpichOwn : kOpenMpiOwn)) != 0) return -1;
  return static_cast<std::int64_t>(tag & mask);
}

}  // namespace score::pm::fi
