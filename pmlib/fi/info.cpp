// The fi_info is made by the library that loaded us, in its own version's size; the fields known
// here have kept their places from libfabric 1.17 to 2.5. Its functions are looked up by hand:
// bound by the linker they would be the versions of 1.17, which older structs go with.
#include "pmlib/fi/info.hpp"

#include "pmlib/fi/link/name.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <arpa/inet.h>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace score::pm::fi {

namespace {

constexpr std::uint64_t kDirections =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr std::uint64_t kTransmitCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE;
constexpr std::uint64_t kReceiveCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV |
                                       FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV |
                                       FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT;
constexpr std::uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr std::uint64_t kCaps = kTransmitCaps | kReceiveCaps | kDomainCaps;
constexpr std::uint64_t kTransmitFlags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
                                         FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                                         FI_MATCH_COMPLETE;
constexpr std::uint64_t kReceiveFlags = FI_COMPLETION | FI_MULTI_RECV;
constexpr std::uint64_t kOrder = FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_ATOMIC_RAR |
                                 FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW |
                                 FI_ORDER_RMA_RAR;
constexpr int kMrParts = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
constexpr std::uint32_t kAddressFormat = FI_PROV_SPECIFIC | 0x504d;  // "PM"
constexpr std::size_t kMostBytes = std::size_t{1} << 40;
constexpr std::size_t kQueueSize = 4096;

fi_info* (*host_dup_info)(const fi_info*) = nullptr;

bool is_subset(std::uint64_t wanted, std::uint64_t offered) {
  return (wanted & ~offered) == 0;
}

// --- matching of hints -------------------------------------------------------------------------

bool fits_transmit(const fi_tx_attr* a) {
  return a == nullptr ||
         (is_subset(a->caps, kCaps) && is_subset(a->op_flags, kTransmitFlags) &&
          is_subset(a->msg_order, kOrder) && a->inject_size <= kInjectBytes &&
          a->size <= kQueueSize && a->iov_limit <= kMaxIov && a->rma_iov_limit <= 1);
}

bool fits_receive(const fi_rx_attr* a) {
  return a == nullptr || (is_subset(a->caps, kCaps) && is_subset(a->op_flags, kReceiveFlags) &&
                          is_subset(a->msg_order, kOrder) && a->iov_limit <= kMaxIov);
}

bool fits_endpoint(const fi_ep_attr* a) {
  if (a == nullptr) return true;
  if (a->type != FI_EP_UNSPEC && a->type != FI_EP_RDM) return false;
  if (a->protocol != FI_PROTO_UNSPEC && a->protocol != (FI_PROV_SPECIFIC | 0x504d)) return false;
  return a->max_msg_size <= kMostBytes && a->msg_prefix_size == 0 && a->tx_ctx_cnt <= 1 &&
         a->rx_ctx_cnt <= 1 && a->auth_key_size == 0;
}

bool fits_domain(const fi_domain_attr* a) {
  if (a == nullptr) return true;
  if (a->name != nullptr && std::strcmp(a->name, "pm") != 0) return false;
  return is_subset(a->caps, kDomainCaps) && a->mr_key_size <= 8 && a->cq_data_size <= 8 &&
         a->auth_key_size == 0;
}

bool fits_fabric(const fi_fabric_attr* a) {
  return a == nullptr || a->name == nullptr || std::strcmp(a->name, "pm") == 0;
}

bool fits(const fi_info& hints) {
  if (!is_subset(hints.caps, kCaps)) return false;
  if (hints.addr_format != FI_FORMAT_UNSPEC && hints.addr_format != kAddressFormat) return false;
  return fits_transmit(hints.tx_attr) && fits_receive(hints.rx_attr) &&
         fits_endpoint(hints.ep_attr) && fits_domain(hints.domain_attr) &&
         fits_fabric(hints.fabric_attr);
}

// --- capabilities offered ----------------------------------------------------------------------

std::uint64_t caps_for(const fi_info* hints) {
  if (hints == nullptr || hints->caps == 0) return kCaps;
  std::uint64_t caps = hints->caps | kDomainCaps;
  // Directions not named are all of the primary capabilities'.
  if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (caps & (FI_SEND | FI_RECV)) == 0) {
    caps |= FI_SEND | FI_RECV;
  }
  constexpr std::uint64_t kAccess = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((caps & (FI_RMA | FI_ATOMIC)) != 0 && (caps & kAccess) == 0) caps |= kAccess;
  return caps;
}

void fill_transmit(fi_tx_attr& a, std::uint64_t caps, const fi_tx_attr* hints) {
  a.caps = caps & kTransmitCaps;
  a.op_flags = hints != nullptr ? hints->op_flags : 0;
  a.msg_order = kOrder;
  a.comp_order = FI_ORDER_NONE;
  a.inject_size = kInjectBytes;
  a.size = kQueueSize;
  a.iov_limit = kMaxIov;
  a.rma_iov_limit = 1;
}

void fill_receive(fi_rx_attr& a, std::uint64_t caps, const fi_rx_attr* hints) {
  a.caps = caps & kReceiveCaps;
  a.op_flags = hints != nullptr ? hints->op_flags : 0;
  a.msg_order = kOrder;
  a.comp_order = FI_ORDER_NONE;
  a.size = kQueueSize;
  a.iov_limit = kMaxIov;
}

void fill_endpoint(fi_ep_attr& a) {
  a.type = FI_EP_RDM;
  a.protocol = FI_PROV_SPECIFIC | 0x504d;
  a.protocol_version = 1;
  a.max_msg_size = kMostBytes;
  a.mem_tag_format = UINT64_MAX;
  a.tx_ctx_cnt = a.rx_ctx_cnt = 1;
}

// No memory mode is required; the old basic mode is given if asked for.
int mr_mode_for(const fi_info* hints) {
  if (hints == nullptr || hints->domain_attr == nullptr) return 0;
  const int mode = hints->domain_attr->mr_mode;
  if (mode == FI_MR_BASIC || mode == FI_MR_SCALABLE) return mode;
  return mode & (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY) & kMrParts;
}

void fill_domain(fi_domain_attr& a, const fi_info* hints) {
  const fi_domain_attr* wanted = hints != nullptr ? hints->domain_attr : nullptr;
  a.name = strdup("pm");
  a.threading = wanted != nullptr && wanted->threading != FI_THREAD_UNSPEC ? wanted->threading
                                                                           : FI_THREAD_SAFE;
  const bool is_auto = wanted != nullptr && wanted->data_progress == FI_PROGRESS_AUTO;
  a.control_progress =
      is_auto || (wanted != nullptr && wanted->control_progress == FI_PROGRESS_AUTO)
          ? FI_PROGRESS_AUTO
          : FI_PROGRESS_MANUAL;
  a.data_progress = is_auto ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
  a.resource_mgmt = FI_RM_ENABLED;
  a.av_type = wanted != nullptr && wanted->av_type != FI_AV_UNSPEC ? wanted->av_type : FI_AV_TABLE;
  a.mr_mode = mr_mode_for(hints);
  a.mr_key_size = 8;
  a.cq_data_size = 8;
  a.cq_cnt = a.ep_cnt = a.tx_ctx_cnt = a.rx_ctx_cnt = a.cntr_cnt = 1024;
  a.max_ep_tx_ctx = a.max_ep_rx_ctx = 1;
  a.mr_iov_limit = 1;
  a.caps = kDomainCaps;
  a.mr_cnt = 1 << 20;
}

// A numeric address that others shall reach this process by.
void fill_source(fi_info& info, const char* node, std::uint64_t flags, const fi_info* hints) {
  Name name;
  in_addr ip{};
  if ((flags & FI_SOURCE) != 0 && node != nullptr && inet_pton(AF_INET, node, &ip) == 1) {
    name.kind = NameKind::Udp;
    name.ip = ip.s_addr;
  } else if (hints == nullptr || hints->src_addr == nullptr || hints->src_addrlen != sizeof name ||
             !read_name(hints->src_addr, name)) {
    return;
  }
  info.src_addr = std::malloc(sizeof name);
  if (info.src_addr == nullptr) return;
  std::memcpy(info.src_addr, &name, sizeof name);
  info.src_addrlen = sizeof name;
}

void fill_destination(fi_info& info, const fi_info* hints) {
  Name name;
  if (hints == nullptr || hints->dest_addr == nullptr || hints->dest_addrlen != sizeof name ||
      !read_name(hints->dest_addr, name)) {
    return;
  }
  info.dest_addr = std::malloc(sizeof name);
  if (info.dest_addr == nullptr) return;
  std::memcpy(info.dest_addr, &name, sizeof name);
  info.dest_addrlen = sizeof name;
}

}  // namespace

std::uint32_t find_host_library(const void* caller) {
  Dl_info where{};
  if (dladdr(caller, &where) == 0 || where.dli_fname == nullptr) return 0;
  void* host = dlopen(where.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (host == nullptr) host = dlopen(nullptr, RTLD_LAZY);  // linked into the program itself
  if (host == nullptr) return 0;
  host_dup_info = reinterpret_cast<decltype(host_dup_info)>(dlsym(host, "fi_dupinfo"));
  const auto version = reinterpret_cast<std::uint32_t (*)()>(dlsym(host, "fi_version"));
  return host_dup_info != nullptr && version != nullptr ? version() : 0;
}

int get_info(std::uint32_t version, const char* node, const char*, std::uint64_t flags,
             const fi_info* hints, fi_info** info) {
  *info = nullptr;
  if (hints != nullptr && !fits(*hints)) return -FI_ENODATA;
  fi_info* made = host_dup_info(nullptr);
  if (made == nullptr) return -FI_ENOMEM;
  made->caps = caps_for(hints);
  made->addr_format = kAddressFormat;
  fill_transmit(*made->tx_attr, made->caps, hints != nullptr ? hints->tx_attr : nullptr);
  fill_receive(*made->rx_attr, made->caps, hints != nullptr ? hints->rx_attr : nullptr);
  fill_endpoint(*made->ep_attr);
  fill_domain(*made->domain_attr, hints);
  made->fabric_attr->name = strdup("pm");
  // The library that calls adds the name of the provider.
  made->fabric_attr->prov_version = FI_VERSION(1, 0);
  made->fabric_attr->api_version = version;
  fill_source(*made, node, flags, hints);
  fill_destination(*made, hints);
  *info = made;
  return 0;
}

}  // namespace score::pm::fi
