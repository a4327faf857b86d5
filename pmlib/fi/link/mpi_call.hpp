// Which function of an MPI library the calling thread is in: the program's own call, from the
// thread's stack. The provider learns nothing of MPI, and whether a program may go on without a
// message depends on what it has called.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace score::pm::fi {

// How a function of MPI ends.
enum class MpiWait : std::uint8_t {
  None,        // by itself, or it is not known: a test, input and output, connecting
  Receive,     // when a message comes that a receive was posted for, or a peer takes one
  Request,     // when a request is complete, which may be of input and output
  Collective,  // when messages of the library's own come
  Memory,      // when memory of a window was used: the process's own, its node's, or a peer's
};

enum class MpiLibrary : std::uint8_t { Other, Mpich, OpenMpi };

struct MpiCall {
  std::array<char, 32> name{};  // "MPI_Recv", ended by 0; empty: none
  MpiWait wait = MpiWait::None;
  bool may_others_call = true;  // other threads may call MPI meanwhile: they may send
  bool may_end_by_file = true;  // a file is open; known for Request only
  MpiLibrary library = MpiLibrary::Other;
};

// Of a function's name, "MPI_Recv" or "MPI_Recv_c".
[[nodiscard]] MpiWait wait_of(std::string_view name);

// The outermost function of the calling thread's stack that lies in an MPI library. Takes some 20
// us, and locks of the dynamic linker.
[[nodiscard]] MpiCall find_mpi_call();

// Match bits of receives.
struct TagFilter {
  std::uint64_t mask = 0;  // of the bits that are compared
  std::uint64_t value = 0;

  [[nodiscard]] bool takes(std::uint64_t tag, std::uint64_t ignore) const {
    return (tag & mask) == value && (ignore & mask) == 0;
  }
};

// Returns the filter for receives that a library has posted for its own messages; it takes none if
// the library's bits are not known.
[[nodiscard]] TagFilter own_receives(MpiLibrary library);

// The tag that an MPI receive with these match bits waits for; -1: any, one of the library's own,
// or of a library whose bits are not known.
[[nodiscard]] std::int64_t mpi_tag(MpiLibrary library, std::uint64_t tag, std::uint64_t ignore);

}  // namespace score::pm::fi
