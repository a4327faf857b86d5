#include "scored/ring_guard/programs.hpp"

#include "pmlib/wire/frame.hpp"
#include "scored/ring_guard/bounds.hpp"

#include <cstddef>
#include <initializer_list>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <sys/socket.h>
#include <utility>

namespace score::ring_guard {

namespace {

constexpr std::uint8_t kArgument = BPF_REG_1;  // of the program: its context
constexpr std::uint8_t kSaved = BPF_REG_6, kBounds = BPF_REG_7;
constexpr std::int16_t kToExit = -1;  // of a jump; replaced when the program is complete

bpf_insn instruction(int code, int to, int from, std::int16_t offset, std::int32_t number) {
  bpf_insn out{};
  out.code = static_cast<std::uint8_t>(code);
  out.dst_reg = static_cast<std::uint8_t>(to & 0xf);
  out.src_reg = static_cast<std::uint8_t>(from & 0xf);
  out.off = offset;
  out.imm = number;
  return out;
}

// size: BPF_H, BPF_W or BPF_DW.
bpf_insn load(int size, int to, int from, std::size_t offset) {
  return instruction(BPF_LDX | BPF_MEM | size, to, from, static_cast<std::int16_t>(offset), 0);
}

bpf_insn load_at(int size, int to, int from, std::int16_t offset) {
  return instruction(BPF_LDX | BPF_MEM | size, to, from, offset, 0);
}

bpf_insn set(int to, std::int32_t number) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number);
}

bpf_insn copy(int to, int from) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

// condition: BPF_JEQ or BPF_JNE.
bpf_insn exit_if(int condition, int left, std::int32_t number) {
  return instruction(BPF_JMP32 | condition | BPF_K, left, 0, kToExit, number);
}

bpf_insn exit_if_null(int left) {
  return instruction(BPF_JMP | BPF_JEQ | BPF_K, left, 0, kToExit, 0);
}

bpf_insn exit_unless_equal(int left, int right) {
  return instruction(BPF_JMP | BPF_JNE | BPF_X, left, right, kToExit, 0);
}

bpf_insn call(std::int32_t helper) {
  return instruction(BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

void add(Program& program, std::initializer_list<bpf_insn> more) {
  program.insert(program.end(), more);
}

// Ends it, and lets the jumps to the exit go there.
Program complete(Program program) {
  program.push_back(instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  for (std::size_t i = 0; i < program.size(); ++i) {
    bpf_insn& one = program[i];
    const int operation = BPF_OP(one.code);
    const bool is_jump = BPF_CLASS(one.code) == BPF_JMP || BPF_CLASS(one.code) == BPF_JMP32;
    if (!is_jump || (operation != BPF_JEQ && operation != BPF_JNE)) continue;
    if (one.off == kToExit) one.off = static_cast<std::int16_t>(program.size() - i - 2);
  }
  return program;
}

// The start of the frame, copied to the stack so that PM's header is aligned.
constexpr std::size_t kCopied = ETH_HLEN + offsetof(pm::FrameHeader, destination);
constexpr std::int16_t kFrame = -static_cast<std::int16_t>(kCopied + 8);
constexpr std::int16_t kHeader = kFrame + ETH_HLEN;
static_assert(kHeader % 8 == 0 && (kFrame + ETH_ALEN) % 4 == 0);

// The field of the frame must be that of the bounds.
void require(Program& program, int size, int place, std::size_t bound) {
  add(program, {load_at(size, BPF_REG_2, BPF_REG_10, static_cast<std::int16_t>(place)),
                load(size, BPF_REG_3, kBounds, bound), exit_unless_equal(BPF_REG_2, BPF_REG_3)});
}

int in_header(std::size_t offset) {
  return kHeader + static_cast<int>(offset);
}

}  // namespace

// 1 lets the call go on.
Program refuse_options() {
  Program program = {set(BPF_REG_0, 1),
                     load(BPF_DW, BPF_REG_2, kArgument, offsetof(bpf_sockopt, sk)),
                     exit_if_null(BPF_REG_2),
                     load(BPF_W, BPF_REG_3, BPF_REG_2, offsetof(bpf_sock, mark)),
                     exit_if(BPF_JNE, BPF_REG_3, static_cast<std::int32_t>(kMark)),
                     load(BPF_W, BPF_REG_3, BPF_REG_2, offsetof(bpf_sock, family)),
                     exit_if(BPF_JNE, BPF_REG_3, AF_PACKET),
                     set(BPF_REG_0, 0)};
  return complete(std::move(program));
}

Program drop_foreign(int table) {
  Program program;
  add(program, {set(BPF_REG_0, TC_ACT_UNSPEC),
                load(BPF_W, BPF_REG_2, kArgument, offsetof(__sk_buff, mark)),
                exit_if(BPF_JNE, BPF_REG_2, static_cast<std::int32_t>(kMark)),
                copy(kSaved, kArgument),
                set(BPF_REG_0, TC_ACT_SHOT),
                load(BPF_DW, BPF_REG_1, kSaved, offsetof(__sk_buff, sk)),
                exit_if_null(BPF_REG_1),
                call(BPF_FUNC_sk_fullsock),
                copy(BPF_REG_2, BPF_REG_0),
                set(BPF_REG_0, TC_ACT_SHOT),
                exit_if_null(BPF_REG_2),
                instruction(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, table),
                instruction(0, 0, 0, 0, 0),
                set(BPF_REG_3, 0),
                set(BPF_REG_4, 0),
                call(BPF_FUNC_sk_storage_get),
                copy(kBounds, BPF_REG_0),
                set(BPF_REG_0, TC_ACT_SHOT),
                exit_if_null(kBounds),
                copy(BPF_REG_1, kSaved),
                set(BPF_REG_2, 0),
                copy(BPF_REG_3, BPF_REG_10),
                instruction(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_3, 0, 0, kFrame),
                set(BPF_REG_4, kCopied),
                call(BPF_FUNC_skb_load_bytes),
                copy(BPF_REG_1, BPF_REG_0),
                set(BPF_REG_0, TC_ACT_SHOT),
                exit_if(BPF_JNE, BPF_REG_1, 0)});
  require(program, BPF_W, kFrame + ETH_ALEN, offsetof(Bounds, source));
  require(program, BPF_H, kFrame + ETH_ALEN + 4, offsetof(Bounds, source) + 4);
  require(program, BPF_H, kFrame + 2 * ETH_ALEN, offsetof(Bounds, ether_type));
  require(program, BPF_H, in_header(offsetof(pm::FrameHeader, magic)),
          offsetof(Bounds, magic_version));
  require(program, BPF_H, in_header(offsetof(pm::FrameHeader, channel)), offsetof(Bounds, channel));
  require(program, BPF_W, in_header(offsetof(pm::FrameHeader, generation)),
          offsetof(Bounds, generation));
  require(program, BPF_W, in_header(offsetof(pm::FrameHeader, source)), offsetof(Bounds, rank));
  // Without a key in the frames there is none to compare: to the verdict, over three instructions.
  add(program, {load(BPF_DW, BPF_REG_3, kBounds, offsetof(Bounds, key)),
                instruction(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_3, 0, 2, 0),
                load_at(BPF_DW, BPF_REG_2, BPF_REG_10,
                        static_cast<std::int16_t>(in_header(offsetof(pm::FrameHeader, key)))),
                exit_unless_equal(BPF_REG_2, BPF_REG_3), set(BPF_REG_0, TC_ACT_UNSPEC)});
  return complete(std::move(program));
}

}  // namespace score::ring_guard
