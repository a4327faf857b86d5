// This module is tested by stacks_test.cpp.
#include "scored/job/stacks/stack_reader.hpp"

#include "base/errc.hpp"
#include "base/os/fd.hpp"
#include "base/text.hpp"
#include "scored/job/stacks/registers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dirent.h>
#include <elf.h>
#include <elfutils/libdwfl.h>
#include <memory>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace score::stacks {

using base::errno_code;
using base::fail;
using base::Result;
using base::Status;

namespace {

constexpr std::size_t kThreadsRead = 256;       // of a process
constexpr std::size_t kFramesRead = 512;        // of a stack, before the tree cuts it
constexpr std::size_t kStackBytes = 64 * 1024;  // copied at once from the top of a stack
constexpr int kMaxChain = 16;                   // processes that wait for each other
constexpr std::size_t kSmallFile = 4'096;

// The C library's frames below main() say nothing about the program.
constexpr std::array<std::string_view, 4> kStartFrames = {
    "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main"};

struct DwflEnd {
  void operator()(Dwfl* dwfl) const { dwfl_end(dwfl); }
};

struct StoppedThread {
  pid_t tid = 0;
  Registers registers;
};

base::Error refused(pid_t process, int error) {
  const auto scope = base::read_file("/proc/sys/kernel/yama/ptrace_scope", kSmallFile);
  if (error == EPERM && scope && base::trim(*scope) != "0") {
    return fail(errno_code(error),
                "the kernel does not let a process trace another: kernel.yama.ptrace_scope is {}",
                base::trim(*scope));
  }
  if (error == EPERM || error == EACCES) {
    return fail(errno_code(error),
                "the kernel does not let its user trace it: it runs with other rights, or a "
                "debugger has it");
  }
  return fail(errno_code(error), "cannot read process {}", process);
}

Result<std::vector<pid_t>> threads_of(pid_t process) {
  std::vector<pid_t> threads;
  const std::string path = fmt::format("/proc/{}/task", process);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return fail(errno_code(errno), "it has ended");
  while (const dirent* entry = readdir(directory.get())) {
    if (const auto tid = base::parse_number<pid_t>(entry->d_name)) threads.push_back(*tid);
    if (threads.size() == kThreadsRead) break;
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

// A thread that has ended in the meantime is left out.
Result<Registers> read_registers(pid_t tid) {
  if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) return fail(errno_code(errno), "seize");
  Registers registers;
  iovec place{&registers.raw, sizeof registers.raw};
  int status = 0;
  const bool has_stopped = ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) == 0 &&
                           waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status);
  const bool is_read =
      has_stopped && ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &place) == 0;  // NOLINT
  const int error = errno;
  // A signal that arrived at this moment is passed on.
  const bool is_event = (status >> 16) == PTRACE_EVENT_STOP;
  const long signal = has_stopped && !is_event ? WSTOPSIG(status) : 0;
  ptrace(PTRACE_DETACH, tid, nullptr, signal);  // NOLINT(performance-no-int-to-ptr)
  if (!is_read) return fail(errno_code(has_stopped ? error : ESRCH), "registers");
  return registers;
}

std::string base_name(const char* path) {
  if (path == nullptr) return {};
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

// Returns the name as in the source: without the version of the symbol, and demangled.
std::string readable(const std::string& symbol) {
  const std::string plain = symbol.substr(0, symbol.find('@'));
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(plain.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && name ? name.get() : plain;
}

using Known = std::map<std::pair<std::string, std::uint64_t>, proto::StackFrame>;

proto::StackFrame look_up(Dwfl_Module* module, const char* file, std::uint64_t at,
                          std::uint64_t offset) {
  proto::StackFrame frame;
  const char* symbol = dwfl_module_addrname(module, at);
  frame.function = symbol == nullptr ? fmt::format("+{:#x}", offset) : readable(symbol);
  frame.place = base_name(file);
  Dwfl_Line* line = dwfl_module_getsrc(module, at);
  if (line == nullptr) return frame;
  int number = 0;
  const char* source = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
  if (source != nullptr) frame.place = fmt::format("{}:{}", base_name(source), number);
  return frame;
}

// A StoppedProcess has what libdwfl's callbacks need while one process is read.
class StoppedProcess {
 public:
  StoppedProcess(pid_t pid, Known& known) : pid_(pid), known_(known) {}

  Status seize(bool all_threads);
  Status open();
  std::vector<Stack> unwind();

 private:
  bool read(std::uint64_t address, void* to, std::size_t bytes) const;
  void copy_stack(std::uint64_t from);
  proto::StackFrame describe(std::uint64_t pc, bool is_return_address);
  int add(Dwfl_Frame* frame);

  static pid_t next_thread(Dwfl* dwfl, void* self, void** thread);
  static bool read_memory(Dwfl* dwfl, Dwarf_Addr address, Dwarf_Word* result, void* self);
  static bool set_registers(Dwfl_Thread* thread, void* stopped);

  pid_t pid_;
  Known& known_;
  std::unique_ptr<Dwfl, DwflEnd> dwfl_;
  std::vector<StoppedThread> threads_;
  std::size_t next_ = 0;  // thread that next_thread() returns
  std::uint64_t copied_from_ = 0;
  std::vector<std::byte> copied_;
  Stack stack_;  // being filled, innermost frame first
};

Status StoppedProcess::seize(bool all_threads) {
  const auto tids = all_threads ? threads_of(pid_) : Result<std::vector<pid_t>>(std::vector{pid_});
  if (!tids) return tids.error();
  for (const pid_t tid : *tids) {
    const auto registers = read_registers(tid);
    if (registers) {
      threads_.push_back({tid, *registers});
      continue;
    }
    const bool is_gone = registers.error().is(std::errc::no_such_process);
    if (is_gone && tid == pid_) return fail(errno_code(ESRCH), "it has ended");
    if (!is_gone) return refused(pid_, registers.error().code().value());
  }
  return {};
}

Status StoppedProcess::open() {
  static constexpr Dwfl_Callbacks kFiles = {.find_elf = dwfl_linux_proc_find_elf,
                                            .find_debuginfo = dwfl_standard_find_debuginfo,
                                            .section_address = nullptr,
                                            .debuginfo_path = nullptr};
  static constexpr Dwfl_Thread_Callbacks kThreads = {.next_thread = next_thread,
                                                     .get_thread = nullptr,
                                                     .memory_read = read_memory,
                                                     .set_initial_registers = set_registers,
                                                     .detach = nullptr,
                                                     .thread_detach = nullptr};
  dwfl_.reset(dwfl_begin(&kFiles));
  if (!dwfl_) return fail(base::Errc::Unsupported, "libdwfl: {}", dwfl_errmsg(-1));
  dwfl_report_begin(dwfl_.get());
  const int reported = dwfl_linux_proc_report(dwfl_.get(), pid_);
  dwfl_report_end(dwfl_.get(), nullptr, nullptr);
  if (reported != 0) return refused(pid_, reported > 0 ? reported : EACCES);
  if (dwfl_attach_state(dwfl_.get(), nullptr, pid_, &kThreads, this)) return {};
  return fail(base::Errc::Unsupported, "libdwfl: {}", dwfl_errmsg(-1));
}

// A stack that cannot be unwound to its end is shown as far as it is known.
std::vector<Stack> StoppedProcess::unwind() {
  std::vector<Stack> stacks;
  for (const StoppedThread& thread : threads_) {
    stack_.clear();
    next_ = 0;
    copy_stack(thread.registers.stack());
    dwfl_getthread_frames(
        dwfl_.get(), thread.tid,
        [](Dwfl_Frame* frame, void* self) -> int {
          return static_cast<StoppedProcess*>(self)->add(frame);
        },
        this);
    while (stack_.size() > 1 &&
           std::ranges::find(kStartFrames, stack_.back().function) != kStartFrames.end()) {
      stack_.pop_back();
    }
    std::ranges::reverse(stack_);
    stacks.push_back(std::move(stack_));
  }
  return stacks;
}

bool StoppedProcess::read(std::uint64_t address, void* to, std::size_t bytes) const {
  const bool is_copied = address >= copied_from_ && bytes <= copied_.size() &&
                         address - copied_from_ <= copied_.size() - bytes;
  if (is_copied) {
    std::memcpy(to, copied_.data() + (address - copied_from_), bytes);
    return true;
  }
  const iovec own{to, bytes};
  const iovec other{reinterpret_cast<void*>(address), bytes};  // NOLINT
  return process_vm_readv(pid_, &own, 1, &other, 1, 0) == static_cast<ssize_t>(bytes);
}

// Copies the top of a stack, page by page because the stack may end before kStackBytes.
void StoppedProcess::copy_stack(std::uint64_t from) {
  constexpr std::uint64_t kPage = 4'096;
  copied_from_ = from;
  copied_.resize(kStackBytes);
  std::vector<iovec> pages;
  for (std::uint64_t done = 0; done < kStackBytes;) {
    const std::uint64_t at = from + done;
    const std::uint64_t bytes = std::min(kPage - at % kPage, kStackBytes - done);
    pages.push_back({reinterpret_cast<void*>(at), bytes});  // NOLINT
    done += bytes;
  }
  const iovec own{copied_.data(), copied_.size()};
  const ssize_t got = process_vm_readv(pid_, &own, 1, pages.data(), pages.size(), 0);
  copied_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
}

// A return address may be the first one of the next function or line.
proto::StackFrame StoppedProcess::describe(std::uint64_t pc, bool is_return_address) {
  const std::uint64_t at = is_return_address ? pc - 1 : pc;
  Dwfl_Module* module = dwfl_addrmodule(dwfl_.get(), at);
  if (module == nullptr) return {fmt::format("{:#x}", pc), {}};
  Dwarf_Addr start = 0;
  const char* file =
      dwfl_module_info(module, nullptr, &start, nullptr, nullptr, nullptr, nullptr, nullptr);
  const auto [place, is_new] =
      known_.try_emplace({file == nullptr ? "" : file, at - start}, proto::StackFrame());
  if (is_new) place->second = look_up(module, file, at, at - start);
  return place->second;
}

int StoppedProcess::add(Dwfl_Frame* frame) {
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  stack_.push_back(describe(pc, !is_activation));
  return stack_.size() < kFramesRead ? DWARF_CB_OK : DWARF_CB_ABORT;
}

pid_t StoppedProcess::next_thread(Dwfl*, void* self, void** thread) {
  auto& process = *static_cast<StoppedProcess*>(self);
  if (process.next_ == process.threads_.size()) return 0;
  *thread = &process.threads_[process.next_];
  return process.threads_[process.next_++].tid;
}

bool StoppedProcess::read_memory(Dwfl*, Dwarf_Addr address, Dwarf_Word* result, void* self) {
  return static_cast<StoppedProcess*>(self)->read(address, result, sizeof *result);
}

bool StoppedProcess::set_registers(Dwfl_Thread* thread, void* stopped) {
  const Registers& registers = static_cast<const StoppedThread*>(stopped)->registers;
  const auto values = registers.values();
  dwfl_thread_state_register_pc(thread, registers.pc());
  return dwfl_thread_state_registers(thread, 0, values.size(), values.data());
}

}  // namespace

Result<std::vector<Stack>> StackReader::read(pid_t pid, bool all_threads) {
  StoppedProcess process(pid, known_);
  if (auto seized = process.seize(all_threads); !seized) return seized.error();
  if (auto opened = process.open(); !opened) return opened.error();
  return process.unwind();
}

pid_t working_process(pid_t first) {
  pid_t process = first;
  for (int i = 0; i < kMaxChain; ++i) {
    const std::string directory = fmt::format("/proc/{}", process);
    const auto call = base::read_file(directory + "/syscall", kSmallFile);
    if (!call) return process;
    const auto number = base::parse_number<long>(base::split(*call, ' ').front());
    if (!number || (*number != SYS_wait4 && *number != SYS_waitid)) return process;
    const auto children =
        base::read_file(fmt::format("{}/task/{}/children", directory, process), kSmallFile);
    if (!children) return process;
    const auto only = base::parse_number<pid_t>(base::trim(*children));
    if (!only) return process;  // none, or several
    process = *only;
  }
  return process;
}

}  // namespace score::stacks
