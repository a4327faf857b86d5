// An MPI library is a shared object that defines MPI_Init. Inside of it the functions that call one
// another have any names, or none; the outermost frame is the function that the program has called.
#include "pmlib/fi/link/mpi_call.hpp"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <span>
#include <sys/stat.h>
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
  int is_before = 0;  // else the address is behind the call, perhaps in the next function
  const std::uintptr_t address = _Unwind_GetIPInfo(context, &is_before) - (is_before != 0 ? 0 : 1);
  frames.addresses[frames.count++] = reinterpret_cast<void*>(address);
  return frames.count < kMostFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
}

// A loaded object, or nothing.
class Object {
 public:
  explicit Object(const Dl_info& info)
      : base_(info.dli_fbase), handle_(dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {}

  ~Object() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // Null if it does not define that itself.
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

MpiLibrary library_of(const Object& object) {
  auto* const version = object.find<int(char*, int*)>("PMPI_Get_library_version");
  std::array<char, 8192> text{};  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the longest
  int length = 0;
  if (version == nullptr || version(text.data(), &length) != 0) return MpiLibrary::Other;
  const std::string_view name(text.data());
  if (name.starts_with("MPICH")) return MpiLibrary::Mpich;
  return name.starts_with("Open MPI") ? MpiLibrary::OpenMpi : MpiLibrary::Other;
}

bool is_alone() {
  struct stat status {};

  // One entry per thread, and two of the directory's own.
  return stat("/proc/self/task", &status) == 0 && status.st_nlink == 3;
}

bool may_others_call(const Object& object) {
  auto* const query = object.find<int(int*)>("PMPI_Query_thread");
  int provided = kSerialized;
  if (query != nullptr && query(&provided) != 0) provided = kSerialized;
  return provided >= kSerialized && !is_alone();
}

// The outermost frame of an MPI library.
bool find_outermost(const Frames& frames, Dl_info& outermost) {
  const void* checked = nullptr;
  bool is_mpi = false, is_found = false;
  for (void* const address : std::span(frames.addresses).first(frames.count)) {
    Dl_info info{};
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) continue;
    if (info.dli_fbase != checked) {
      checked = info.dli_fbase;
      is_mpi = Object(info).find<int(int*, char***)>("MPI_Init") != nullptr;
    }
    if (!is_mpi) continue;
    outermost = info;
    is_found = true;
  }
  return is_found;
}

struct Waiting {
  std::string_view name;  // without MPI_
  MpiWait wait;
};

constexpr auto kCollective = MpiWait::Collective;

// Functions that end only by messages. Sorted.
constexpr std::array kWaiting{
    Waiting{"Allgather", kCollective},
    Waiting{"Allgatherv", kCollective},
    Waiting{"Allreduce", kCollective},
    Waiting{"Alltoall", kCollective},
    Waiting{"Alltoallv", kCollective},
    Waiting{"Alltoallw", kCollective},
    Waiting{"Barrier", kCollective},
    Waiting{"Bcast", kCollective},
    Waiting{"Cart_create", kCollective},
    Waiting{"Comm_create", kCollective},
    Waiting{"Comm_create_group", kCollective},
    Waiting{"Comm_dup", kCollective},
    Waiting{"Comm_split", kCollective},
    Waiting{"Exscan", kCollective},
    Waiting{"Gather", kCollective},
    Waiting{"Gatherv", kCollective},
    Waiting{"Intercomm_create", kCollective},
    Waiting{"Intercomm_merge", kCollective},
    Waiting{"Mprobe", MpiWait::Receive},
    Waiting{"Mrecv", MpiWait::Receive},
    Waiting{"Neighbor_allgather", kCollective},
    Waiting{"Neighbor_allgatherv", kCollective},
    Waiting{"Neighbor_alltoall", kCollective},
    Waiting{"Neighbor_alltoallv", kCollective},
    Waiting{"Neighbor_alltoallw", kCollective},
    Waiting{"Probe", MpiWait::Receive},
    Waiting{"Recv", MpiWait::Receive},
    Waiting{"Reduce", kCollective},
    Waiting{"Reduce_scatter", kCollective},
    Waiting{"Reduce_scatter_block", kCollective},
    Waiting{"Rsend", MpiWait::Receive},
    Waiting{"Scan", kCollective},
    Waiting{"Scatter", kCollective},
    Waiting{"Scatterv", kCollective},
    Waiting{"Send", MpiWait::Receive},
    Waiting{"Sendrecv", MpiWait::Receive},
    Waiting{"Sendrecv_replace", MpiWait::Receive},
    Waiting{"Ssend", MpiWait::Receive},
    Waiting{"Wait", MpiWait::Request},
    Waiting{"Waitall", MpiWait::Request},
    Waiting{"Waitany", MpiWait::Request},
    Waiting{"Waitsome", MpiWait::Request},
    Waiting{"Win_allocate", kCollective},
    Waiting{"Win_complete", kCollective},
    Waiting{"Win_create", kCollective},
    Waiting{"Win_fence", kCollective},
    Waiting{"Win_flush", kCollective},
    Waiting{"Win_flush_all", kCollective},
    Waiting{"Win_free", kCollective},
    Waiting{"Win_lock", kCollective},
    Waiting{"Win_start", kCollective},
    Waiting{"Win_unlock", kCollective},
    Waiting{"Win_unlock_all", kCollective},
    Waiting{"Win_wait", kCollective},
};

constexpr bool is_before(const Waiting& a, const Waiting& b) {
  return a.name < b.name;
}

static_assert(std::is_sorted(kWaiting.begin(), kWaiting.end(), is_before), "it is searched");

}  // namespace

MpiWait wait_of(std::string_view name) {
  constexpr std::string_view kPrefix = "MPI_", kLargeCounts = "_c";
  if (!name.starts_with(kPrefix)) return MpiWait::None;
  name.remove_prefix(kPrefix.size());
  if (name.ends_with(kLargeCounts)) name.remove_suffix(kLargeCounts.size());
  const auto* const found =
      std::lower_bound(kWaiting.begin(), kWaiting.end(), Waiting{name, MpiWait::None}, is_before);
  return found != kWaiting.end() && found->name == name ? found->wait : MpiWait::None;
}

MpiCall find_mpi_call() {
  Frames frames;
  _Unwind_Backtrace(add_frame, &frames);
  Dl_info outermost{};
  MpiCall call;
  if (!find_outermost(frames, outermost) || outermost.dli_sname == nullptr) return call;
  std::string_view name(outermost.dli_sname);
  if (name.starts_with("PMPI_")) name.remove_prefix(1);
  name.copy(call.name.data(), call.name.size() - 1);
  const Object object(outermost);
  call.library = library_of(object);
  call.wait = wait_of(name);
  if (call.wait != MpiWait::None && may_others_call(object)) call.wait = MpiWait::None;
  return call;
}

std::int64_t mpi_tag(MpiLibrary library, std::uint64_t tag, std::uint64_t ignore) {
  // MPICH, ch4/ofi: 31 bits where the source goes as data of the completion; the lowest bit of the
  // context before them is set for its own messages. Open MPI, mtl/ofi: 32 bits, negative for its
  // own.
  constexpr std::uint64_t kMpichTag = (std::uint64_t{1} << 31) - 1;
  constexpr std::uint64_t kMpichOwn = std::uint64_t{1} << 31;
  constexpr std::uint64_t kOpenMpiTag = 0xffff'ffff, kOpenMpiOwn = 0x8000'0000;
  const bool is_mpich = library == MpiLibrary::Mpich;
  if (!is_mpich && library != MpiLibrary::OpenMpi) return -1;
  const std::uint64_t mask = is_mpich ? kMpichTag : kOpenMpiTag;
  if ((ignore & mask) != 0 || (tag & (is_mpich ? kMpichOwn : kOpenMpiOwn)) != 0) return -1;
  return static_cast<std::int64_t>(tag & mask);
}

}  // namespace score::pm::fi
