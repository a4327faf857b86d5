#include "scored/privileged/device_guard/device_program.hpp"

#include <gtest/gtest.h>

#include <array>

namespace score::device_guard {
namespace {

constexpr std::uint32_t kChar = BPF_DEVCG_DEV_CHAR;
constexpr std::uint32_t kBlock = BPF_DEVCG_DEV_BLOCK;
constexpr std::uint32_t kReadAndWrite = 6U << 16U;

// Executes the program as the kernel would, but knows only the instructions of which the program
// consists.
bool run(const pm::EbpfProgram& program, std::uint32_t kind, std::uint32_t major,
         std::uint32_t minor) {
  const std::array<std::uint32_t, 3> context{kReadAndWrite | kind, major, minor};
  std::array<std::uint64_t, 11> registers{};
  for (std::size_t at = 0; at < program.size(); ++at) {
    const bpf_insn& one = program[at];
    std::uint64_t& to = registers.at(one.dst_reg);
    switch (one.code) {
      case BPF_LDX | BPF_MEM | BPF_W:
        to = context.at(static_cast<std::size_t>(one.off) / 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        to = static_cast<std::uint32_t>(to) & static_cast<std::uint32_t>(one.imm);
        break;
      case BPF_ALU64 | BPF_MOV | BPF_K:
        to = static_cast<std::uint64_t>(one.imm);
        break;
      case BPF_JMP32 | BPF_JNE | BPF_K:
        if (static_cast<std::uint32_t>(to) != static_cast<std::uint32_t>(one.imm)) {
          at += static_cast<std::size_t>(one.off);
        }
        break;
      case BPF_JMP | BPF_EXIT:
        return registers[0] == 1;
      default:
        ADD_FAILURE() << "instruction " << int{one.code};
        return false;
    }
  }
  ADD_FAILURE() << "it does not end";
  return false;
}

TEST(DeviceProgram, AllowsAllWithoutRules) {
  EXPECT_TRUE(run(make_program({}), kChar, 10, 232));
}

TEST(DeviceProgram, DeniesNamedDevices) {
  DevicePolicy policy;
  policy.deny = {{false, 10, 232}, {true, 7, std::nullopt}};
  const auto program = make_program(policy);
  EXPECT_FALSE(run(program, kChar, 10, 232));
  EXPECT_TRUE(run(program, kChar, 10, 200));
  EXPECT_TRUE(run(program, kBlock, 10, 232));
  EXPECT_FALSE(run(program, kBlock, 7, 0));
  EXPECT_FALSE(run(program, kBlock, 7, 99));
  EXPECT_TRUE(run(program, kChar, 7, 99));
}

TEST(DeviceProgram, AllowsOnlyNamedAndBasicDevices) {
  const DevicePolicy policy{
      basic_devices(), {{false, 195, 255}}, {{false, 195, std::nullopt}}, false};
  const auto program = make_program(policy);
  EXPECT_TRUE(run(program, kChar, 195, 0));
  EXPECT_FALSE(run(program, kChar, 195, 255)) << "denied wins";
  EXPECT_FALSE(run(program, kChar, 10, 232));
  EXPECT_TRUE(run(program, kChar, 1, 3)) << "null";
  EXPECT_FALSE(run(program, kChar, 1, 1)) << "mem";
  EXPECT_FALSE(run(program, kBlock, 1, 3));
  EXPECT_TRUE(run(program, kChar, 5, 2)) << "ptmx";
  EXPECT_TRUE(run(program, kChar, 136, 7)) << "a pseudo-terminal";
}

TEST(DeviceProgram, HoldsLargeNumbers) {
  DevicePolicy policy;
  policy.deny = {{false, 0xfff, 0xfffff}};
  const auto program = make_program(policy);
  EXPECT_FALSE(run(program, kChar, 0xfff, 0xfffff));
  EXPECT_TRUE(run(program, kChar, 0xfff, 0xffff));
}

}  // namespace
}  // namespace score::device_guard
