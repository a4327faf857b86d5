// Finds the MPI function that the program has called, from the stack of the calling thread.
// libfabric does not pass this to the provider, and whether a program may go on without a message
// depends on its call.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace score::pm::fi {

// Describes the event that ends a function of MPI.
enum class MpiWait : std::uint8_t {
  None,        // no message, or it is not known: a test, input and output, connecting
  Receive,     // a message for a posted receive, or a peer that takes one
  Request,     // the completion of a request, perhaps of input and output
  Collective,  // messages of the library's own
  Memory,      // a use of window memory: the process's own, its node's, or a peer's
};

enum class MpiImplementation : std::uint8_t { Other, Mpich, OpenMpi };

struct MpiCall {
  std::array<char, 32> name{};  // "MPI_Recv", terminated by 0; empty: none
  MpiWait wait = MpiWait::None;
  bool may_others_call = true;  // other threads may call MPI meanwhile, and send
  bool may_end_by_file = true;  // a file is open; known for Request only
  MpiImplementation library = MpiImplementation::Other;
  const void* returns_to = nullptr;  // the instruction after the call; null: unknown
};

// Returns how a function ends, given its name: "MPI_Recv" or "MPI_Recv_c".
[[nodiscard]] MpiWait wait_of(std::string_view name);

// Returns the outermost function of the calling thread's stack that lies in an MPI library. Takes
// some 20 us, and locks of the dynamic linker.
[[nodiscard]] MpiCall find_mpi_call();

// Selects receives by their match bits.
struct TagFilter {
  std::uint64_t mask = 0;  // the bits that are compared
  std::uint64_t value = 0;

  [[nodiscard]] bool takes(std::uint64_t tag, std::uint64_t ignore) const {
    return (tag & mask) == value && (ignore & mask) == 0;
  }
};

// Returns the filter for receives that a library has posted for its own messages. The filter
// accepts none if the library's bits are not known.
[[nodiscard]] TagFilter own_receives(MpiImplementation library);

// Returns the tag that an MPI receive with these match bits waits for. Returns -1 for a receive of
// any tag, for one of the library's own, and if the library's bits are not known.
[[nodiscard]] std::int64_t mpi_tag(MpiImplementation library, std::uint64_t tag,
                                   std::uint64_t ignore);

}  // namespace score::pm::fi
