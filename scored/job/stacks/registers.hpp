#pragma once
// The registers of a stopped thread, in the numbers of DWARF for this processor.

#include <array>
#include <cstddef>
#include <cstdint>
#include <sys/user.h>

namespace score::stacks {

#if defined(__x86_64__)
inline constexpr std::size_t kRegisters = 17;

struct Registers {
  user_regs_struct raw{};

  [[nodiscard]] std::array<std::uint64_t, kRegisters> values() const {
    return {raw.rax, raw.rdx, raw.rcx, raw.rbx, raw.rsi, raw.rdi, raw.rbp, raw.rsp, raw.r8,
            raw.r9,  raw.r10, raw.r11, raw.r12, raw.r13, raw.r14, raw.r15, raw.rip};
  }

  [[nodiscard]] std::uint64_t stack() const { return raw.rsp; }

  [[nodiscard]] std::uint64_t pc() const { return raw.rip; }
};
#elif defined(__aarch64__)
inline constexpr std::size_t kRegisters = 32;

struct Registers {
  user_regs_struct raw{};

  [[nodiscard]] std::array<std::uint64_t, kRegisters> values() const {
    std::array<std::uint64_t, kRegisters> all{};
    for (std::size_t i = 0; i + 1 < kRegisters; ++i) all.at(i) = raw.regs[i];
    all.back() = raw.sp;
    return all;
  }

  [[nodiscard]] std::uint64_t stack() const { return raw.sp; }

  [[nodiscard]] std::uint64_t pc() const { return raw.pc; }
};
#else
#error "score stacks: the registers of this processor are not known"
#endif

}  // namespace score::stacks
