#include "scored/privileged/device_guard/device_program.hpp"

#include "tests/support/privileged/ebpf_machine.hpp"

#include <gtest/gtest.h>

namespace score::device_guard {
namespace {

constexpr std::uint32_t kChar = BPF_DEVCG_DEV_CHAR;
constexpr std::uint32_t kBlock = BPF_DEVCG_DEV_BLOCK;
constexpr std::uint32_t kReadAndWrite = 6U << 16U;

bool run(const pm::EbpfProgram& program, std::uint32_t kind, std::uint32_t major,
         std::uint32_t minor) {
  const bpf_cgroup_dev_ctx context{kReadAndWrite | kind, major, minor};
  const auto verdict = pm::EbpfMachine().run(program, &context);
  EXPECT_TRUE(verdict) << "unknown instruction, or no end";
  return verdict == 1;
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
