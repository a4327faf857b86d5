#pragma once
// Reads the call stacks of stopped processes of the same user, with elfutils' libdwfl.
//
// Each thread is seized for some ten microseconds, until its registers are known, and stays as
// stopped as it was: PTRACE_SEIZE and PTRACE_INTERRUPT work on a frozen cgroup, where PTRACE_ATTACH
// waits for ever. The rest only reads memory and files. If this process is killed, the kernel
// releases what it has seized.

#include "base/result.hpp"
#include "proto/documents/stack_tree.hpp"

#include <map>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace score::stacks {

// A stack has its outermost frame first.
using Stack = std::vector<proto::StackFrame>;

class StackReader {
 public:
  // Returns the stack of the process's first thread, or of each thread. Errors: errno codes, with
  // what to do where the kernel forbids it.
  base::Result<std::vector<Stack>> read(pid_t process, bool all_threads);

 private:
  // Symbols are looked up once for all processes that run the same files: [file, offset].
  std::map<std::pair<std::string, std::uint64_t>, proto::StackFrame> known_;
};

// Follows processes that wait for their only child, such as a shell that started the program of a
// rank. Returns the last one.
pid_t working_process(pid_t first);

}  // namespace score::stacks
