#pragma once
// EbpfMachine executes an eBPF program as the kernel would, for tests. It knows only the
// instructions of which the programs of scored/privileged consist, and it works on memory of this
// process, so a sanitizer sees every access.

#include "pmlib/wire/ebpf_program.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

namespace score::pm {

class EbpfMachine {
 public:
  using Registers = std::array<std::uint64_t, 11>;
  // A function of the kernel, which gets its parameters in registers 1 to 5.
  using Helper = std::function<std::uint64_t(const Registers&)>;

  static std::uint64_t address(const void* memory) {
    return reinterpret_cast<std::uintptr_t>(memory);
  }

  template <class Type>
  static Type* pointer(std::uint64_t address) {
    return reinterpret_cast<Type*>(static_cast<std::uintptr_t>(address));
  }

  void add_helper(std::int32_t number, Helper helper) { helpers_[number] = std::move(helper); }

  // Returns register 0 at the exit. Returns nullopt if the program has an instruction that this
  // class does not know, or does not end.
  std::optional<std::uint64_t> run(const EbpfProgram& program, const void* context) {
    std::array<std::uint8_t, 512> stack{};
    Registers registers{};
    registers[BPF_REG_1] = address(context);
    registers[BPF_REG_10] = address(stack.data() + stack.size());
    for (std::size_t at = 0; at < program.size(); ++at) {
      const bpf_insn& one = program[at];
      if (one.code == (BPF_JMP | BPF_EXIT)) return registers[0];
      const auto skipped = execute(one, registers);
      if (!skipped) return std::nullopt;
      at += *skipped;
    }
    return std::nullopt;
  }

 private:
  // Returns how many instructions are skipped.
  std::optional<std::size_t> execute(const bpf_insn& one, Registers& registers) {
    std::uint64_t& to = registers.at(one.dst_reg);
    const std::uint64_t from = registers.at(one.src_reg);
    const auto number = static_cast<std::uint64_t>(std::int64_t{one.imm});
    const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
    const auto jump_if = [&one](bool jumps) {
      return std::optional(jumps ? static_cast<std::size_t>(one.off) : 0);
    };
    switch (one.code) {
      case BPF_LDX | BPF_MEM | BPF_H:
        return load<std::uint16_t>(one, from, to);
      case BPF_LDX | BPF_MEM | BPF_W:
        return load<std::uint32_t>(one, from, to);
      case BPF_LDX | BPF_MEM | BPF_DW:
        return load<std::uint64_t>(one, from, to);
      case BPF_LD | BPF_DW | BPF_IMM:
        to = number;
        return 1;  // the second half of the number
      case BPF_ALU | BPF_AND | BPF_K:
        to = low(to) & low(number);
        return 0;
      case BPF_ALU64 | BPF_MOV | BPF_K:
        to = number;
        return 0;
      case BPF_ALU64 | BPF_MOV | BPF_X:
        to = from;
        return 0;
      case BPF_ALU64 | BPF_ADD | BPF_K:
        to += number;
        return 0;
      case BPF_JMP32 | BPF_JNE | BPF_K:
        return jump_if(low(to) != low(number));
      case BPF_JMP | BPF_JEQ | BPF_K:
        return jump_if(to == number);
      case BPF_JMP | BPF_JNE | BPF_X:
        return jump_if(to != from);
      case BPF_JMP | BPF_CALL:
        return call(one.imm, registers);
      default:
        return std::nullopt;
    }
  }

  template <class Value>
  static std::optional<std::size_t> load(const bpf_insn& one, std::uint64_t from,
                                         std::uint64_t& to) {
    Value value{};
    const auto place = from + static_cast<std::uint64_t>(std::int64_t{one.off});
    std::memcpy(&value, pointer<const void>(place), sizeof value);
    to = value;
    return 0;
  }

  std::optional<std::size_t> call(std::int32_t number, Registers& registers) {
    const auto helper = helpers_.find(number);
    if (helper == helpers_.end()) return std::nullopt;
    registers[0] = helper->second(registers);
    return 0;
  }

  std::map<std::int32_t, Helper> helpers_;
};

}  // namespace score::pm
