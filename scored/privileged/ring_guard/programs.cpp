#include "scored/privileged/ring_guard/programs.hpp"

#include "pmlib/wire/frame.hpp"
#include "scored/privileged/ring_guard/bounds.hpp"

#include <cstddef>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <sys/socket.h>
#include <utility>

namespace score::ring_guard {

namespace {

namespace ebpf = pm::ebpf;
using ebpf::call;
using ebpf::complete;
using ebpf::copy;
using ebpf::exit_if;
using ebpf::exit_if_null;
using ebpf::exit_if_register;
using ebpf::kArgument;
using ebpf::load;
using ebpf::load_at;
using ebpf::set;

constexpr std::uint8_t kSaved = BPF_REG_6, kBounds = BPF_REG_7;

// The start of the frame is copied to the stack, so that PM's header is aligned.
constexpr std::size_t kCopied = ETH_HLEN + offsetof(pm::FrameHeader, destination);
constexpr std::int16_t kFrame = -static_cast<std::int16_t>(kCopied + 8);
constexpr std::int16_t kHeader = kFrame + ETH_HLEN;
static_assert(kHeader % 8 == 0 && (kFrame + ETH_ALEN) % 4 == 0);

// Requires the field of the frame to match the bounds.
void require(pm::EbpfProgram& program, int size, int place, std::size_t bound) {
  ebpf::append(program, {load_at(size, BPF_REG_2, BPF_REG_10, static_cast<std::int16_t>(place)),
                         load(size, BPF_REG_3, kBounds, bound),
                         exit_if_register(BPF_JNE, BPF_REG_2, BPF_REG_3)});
}

int in_header(std::size_t offset) {
  return kHeader + static_cast<int>(offset);
}

}  // namespace

// The program returns 1 to let the call continue.
pm::EbpfProgram refuse_options() {
  pm::EbpfProgram program = {set(BPF_REG_0, 1),
                             load(BPF_DW, BPF_REG_2, kArgument, offsetof(bpf_sockopt, sk)),
                             exit_if_null(BPF_REG_2),
                             load(BPF_W, BPF_REG_3, BPF_REG_2, offsetof(bpf_sock, mark)),
                             exit_if(BPF_JNE, BPF_REG_3, static_cast<std::int32_t>(kMark)),
                             load(BPF_W, BPF_REG_3, BPF_REG_2, offsetof(bpf_sock, family)),
                             exit_if(BPF_JNE, BPF_REG_3, AF_PACKET),
                             set(BPF_REG_0, 0)};
  return complete(std::move(program));
}

pm::EbpfProgram drop_foreign(int table) {
  pm::EbpfProgram program;
  ebpf::append(
      program,
      {set(BPF_REG_0, TC_ACT_UNSPEC), load(BPF_W, BPF_REG_2, kArgument, offsetof(__sk_buff, mark)),
       exit_if(BPF_JNE, BPF_REG_2, static_cast<std::int32_t>(kMark)), copy(kSaved, kArgument),
       set(BPF_REG_0, TC_ACT_SHOT), load(BPF_DW, BPF_REG_1, kSaved, offsetof(__sk_buff, sk)),
       exit_if_null(BPF_REG_1), call(BPF_FUNC_sk_fullsock), copy(BPF_REG_2, BPF_REG_0),
       set(BPF_REG_0, TC_ACT_SHOT), exit_if_null(BPF_REG_2)});
  ebpf::append_map(program, BPF_REG_1, table);
  ebpf::append(
      program,
      {set(BPF_REG_3, 0), set(BPF_REG_4, 0), call(BPF_FUNC_sk_storage_get),
       copy(kBounds, BPF_REG_0), set(BPF_REG_0, TC_ACT_SHOT), exit_if_null(kBounds),
       copy(BPF_REG_1, kSaved), set(BPF_REG_2, 0), copy(BPF_REG_3, BPF_REG_10),
       ebpf::add(BPF_REG_3, kFrame), set(BPF_REG_4, kCopied), call(BPF_FUNC_skb_load_bytes),
       copy(BPF_REG_1, BPF_REG_0), set(BPF_REG_0, TC_ACT_SHOT), exit_if(BPF_JNE, BPF_REG_1, 0)});
  require(program, BPF_W, kFrame + ETH_ALEN, offsetof(Bounds, source));
  require(program, BPF_H, kFrame + ETH_ALEN + 4, offsetof(Bounds, source) + 4);
  require(program, BPF_H, kFrame + 2 * ETH_ALEN, offsetof(Bounds, ether_type));
  require(program, BPF_H, in_header(offsetof(pm::FrameHeader, magic)),
          offsetof(Bounds, magic_version));
  require(program, BPF_H, in_header(offsetof(pm::FrameHeader, channel)), offsetof(Bounds, channel));
  require(program, BPF_W, in_header(offsetof(pm::FrameHeader, generation)),
          offsetof(Bounds, generation));
  require(program, BPF_W, in_header(offsetof(pm::FrameHeader, source)), offsetof(Bounds, rank));
  // Without a key in the frames there is none to compare, so this jumps over three instructions to
  // the verdict.
  ebpf::append(program,
               {load(BPF_DW, BPF_REG_3, kBounds, offsetof(Bounds, key)),
                ebpf::instruction(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_3, 0, 2, 0),
                load_at(BPF_DW, BPF_REG_2, BPF_REG_10,
                        static_cast<std::int16_t>(in_header(offsetof(pm::FrameHeader, key)))),
                exit_if_register(BPF_JNE, BPF_REG_2, BPF_REG_3), set(BPF_REG_0, TC_ACT_UNSPEC)});
  return complete(std::move(program));
}

}  // namespace score::ring_guard
