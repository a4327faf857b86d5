// Each rule is a few comparisons that skip its `exit`. The context is struct bpf_cgroup_dev_ctx.
#include "scored/privileged/device_guard/device_program.hpp"

#include <cstddef>

namespace score::device_guard {
namespace {

using pm::EbpfProgram;
using pm::ebpf::instruction;

constexpr int kVerdict = BPF_REG_0;
constexpr int kKind = BPF_REG_2;
constexpr int kMajor = BPF_REG_3;
constexpr int kMinor = BPF_REG_4;

bpf_insn skip_unless(int value, std::uint32_t number, std::size_t count) {
  return instruction(BPF_JMP32 | BPF_JNE | BPF_K, value, 0, static_cast<std::int16_t>(count),
                     static_cast<std::int32_t>(number));
}

void append_rule(EbpfProgram& program, const DeviceRule& rule, bool verdict) {
  EbpfProgram then{pm::ebpf::set(kVerdict, verdict ? 1 : 0),
                   instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)};
  if (rule.minor) then.insert(then.begin(), skip_unless(kMinor, *rule.minor, then.size()));
  then.insert(then.begin(), skip_unless(kMajor, rule.major, then.size()));
  const std::uint32_t kind = rule.is_block ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
  then.insert(then.begin(), skip_unless(kKind, kind, then.size()));
  program.insert(program.end(), then.begin(), then.end());
}

}  // namespace

EbpfProgram make_program(const DevicePolicy& policy) {
  using pm::ebpf::kArgument;
  using pm::ebpf::load;
  EbpfProgram program;
  pm::ebpf::append(program,
                   {load(BPF_W, kKind, kArgument, offsetof(bpf_cgroup_dev_ctx, access_type)),
                    instruction(BPF_ALU | BPF_AND | BPF_K, kKind, 0, 0, 0xffff),
                    load(BPF_W, kMajor, kArgument, offsetof(bpf_cgroup_dev_ctx, major)),
                    load(BPF_W, kMinor, kArgument, offsetof(bpf_cgroup_dev_ctx, minor))});
  for (const DeviceRule& rule : policy.always) append_rule(program, rule, true);
  for (const DeviceRule& rule : policy.deny) append_rule(program, rule, false);
  for (const DeviceRule& rule : policy.allow) append_rule(program, rule, true);
  program.push_back(pm::ebpf::set(kVerdict, policy.otherwise ? 1 : 0));
  return pm::ebpf::complete(std::move(program));
}

}  // namespace score::device_guard
