// These functions build eBPF programs from single instructions. The programs here are short, and a
// compiler for them would be one more build dependency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <linux/bpf.h>
#include <utility>
#include <vector>

namespace score::pm {

using EbpfProgram = std::vector<bpf_insn>;

namespace ebpf {

constexpr std::uint8_t kArgument = BPF_REG_1;  // of the program: its context
constexpr std::int16_t kToExit = -1;           // of a jump; replaced by complete()

inline bpf_insn instruction(int code, int to, int from, std::int16_t offset, std::int32_t number) {
  bpf_insn out{};
  out.code = static_cast<std::uint8_t>(code);
  out.dst_reg = static_cast<std::uint8_t>(to & 0xf);
  out.src_reg = static_cast<std::uint8_t>(from & 0xf);
  out.off = offset;
  out.imm = number;
  return out;
}

// `size` is BPF_H, BPF_W or BPF_DW.
inline bpf_insn load(int size, int to, int from, std::size_t offset) {
  return instruction(BPF_LDX | BPF_MEM | size, to, from, static_cast<std::int16_t>(offset), 0);
}

inline bpf_insn load_at(int size, int to, int from, std::int16_t offset) {
  return instruction(BPF_LDX | BPF_MEM | size, to, from, offset, 0);
}

inline bpf_insn set(int to, std::int32_t number) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number);
}

inline bpf_insn copy(int to, int from) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

inline bpf_insn add(int to, std::int32_t number) {
  return instruction(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, number);
}

// `condition` is BPF_JEQ or BPF_JNE.
inline bpf_insn exit_if(int condition, int left, std::int32_t number) {
  return instruction(BPF_JMP32 | condition | BPF_K, left, 0, kToExit, number);
}

inline bpf_insn exit_if_null(int left) {
  return instruction(BPF_JMP | BPF_JEQ | BPF_K, left, 0, kToExit, 0);
}

// `condition` is BPF_JNE.
inline bpf_insn exit_if_register(int condition, int left, int right) {
  return instruction(BPF_JMP | condition | BPF_X, left, right, kToExit, 0);
}

inline bpf_insn call(std::int32_t helper) {
  return instruction(BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

inline void append(EbpfProgram& program, std::initializer_list<bpf_insn> more) {
  program.insert(program.end(), more);
}

inline void append_map(EbpfProgram& program, int to, int map) {
  append(program, {instruction(BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map),
                   instruction(0, 0, 0, 0, 0)});
}

// Appends the exit and sets the offsets of the jumps to it.
inline EbpfProgram complete(EbpfProgram program) {
  program.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  for (std::size_t i = 0; i < program.size(); ++i) {
    bpf_insn& one = program[i];
    const int operation = BPF_OP(one.code);
    const bool is_jump = BPF_CLASS(one.code) == BPF_JMP || BPF_CLASS(one.code) == BPF_JMP32;
    if (!is_jump || operation == BPF_CALL || operation == BPF_EXIT || one.off != kToExit) continue;
    one.off = static_cast<std::int16_t>(program.size() - i - 2);
  }
  return program;
}

}  // namespace ebpf

}  // namespace score::pm
