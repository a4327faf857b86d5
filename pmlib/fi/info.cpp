// The fi_info is allocated by the library that loaded us, in the size of its own version; the
// fields known here have kept their places from libfabric 1.17 to 2.5. We look up its functions by
// hand: the linker would bind the versions of 1.17, which expect older structs.
#include "pmlib/fi/info.hpp"

#include "pmlib/fi/addresses.hpp"
#include "pmlib/fi/hints.hpp"

#include <cstring>
#include <dlfcn.h>

namespace score::pm::fi {

namespace {

fi_info* (*host_dup_info)(const fi_info*) = nullptr;
void (*host_free_info)(fi_info*) = nullptr;

std::uint64_t caps_for(const fi_info* hints) {
  if (hints == nullptr || hints->caps == 0) return kCaps & ~kCapsOnDemand;
  std::uint64_t caps = hints->caps | kDomainCaps;
  // If the hints name no directions, they ask for all directions of the primary capabilities.
  if ((caps & (FI_MSG | FI_TAGGED)) != 0 && (caps & (FI_SEND | FI_RECV)) == 0) {
    caps |= FI_SEND | FI_RECV;
  }
  constexpr std::uint64_t kAccess = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((caps & (FI_RMA | FI_ATOMIC)) != 0 && (caps & kAccess) == 0) caps |= kAccess;
  if ((caps & (FI_RMA | FI_ATOMIC)) != 0) caps |= FI_RMA_EVENT;  // free of cost
  return caps;
}

void fill_transmit(fi_tx_attr& a, std::uint64_t caps, const fi_tx_attr* hints) {
  a.caps = caps & kTransmitCaps;
  a.op_flags = hints != nullptr ? hints->op_flags : 0;
  a.msg_order = kOrder | (hints != nullptr ? hints->msg_order : 0);
  a.comp_order = 0;
  a.inject_size = inject_bytes();
  a.size = kQueueSize;
  a.iov_limit = kMaxIov;
  a.rma_iov_limit = kMaxRemoteIov;
}

void fill_receive(fi_rx_attr& a, std::uint64_t caps, const fi_rx_attr* hints) {
  a.caps = caps & kReceiveCaps;
  a.op_flags = hints != nullptr ? hints->op_flags : 0;
  a.msg_order = kOrder | (hints != nullptr ? hints->msg_order : 0);
  a.comp_order = 0;
  a.size = kQueueSize;
  a.iov_limit = kMaxIov;
}

void fill_endpoint(fi_ep_attr& a, std::uint64_t order) {
  a.type = FI_EP_RDM;
  a.protocol = kProtocol;
  a.protocol_version = 1;
  a.max_msg_size = kMostBytes;
  a.max_order_raw_size = ordered_bytes(order, kReadAfterWrite);
  a.max_order_war_size = kAtomicBytes;
  a.max_order_waw_size = ordered_bytes(order, kWriteAfterWrite);
  a.mem_tag_format = UINT64_MAX;
  a.tx_ctx_cnt = a.rx_ctx_cnt = 1;
}

// An application written before 1.5 chooses between two modes. Since then it offers the modes that
// it supports and gets back those that are needed: none. The old basic mode is still returned on
// request.
int mr_mode_for(std::uint32_t version, const fi_info* hints) {
  const bool has_attr = hints != nullptr && hints->domain_attr != nullptr;
  const int mode = has_attr ? hints->domain_attr->mr_mode : kMrUnspec;
  if ((mode & kMrBasic) != 0) return kMrBasic;
  const bool is_old = FI_VERSION_LT(version, FI_VERSION(1, 5));
  return is_old || (mode & kMrScalable) != 0 ? kMrScalable : kMrUnspec;
}

void fill_domain(fi_domain_attr& a, std::uint32_t version, const fi_info* hints) {
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
  a.mr_mode = mr_mode_for(version, hints);
  a.mr_key_size = 8;
  a.cq_data_size = 8;
  a.cq_cnt = a.ep_cnt = a.tx_ctx_cnt = a.rx_ctx_cnt = a.cntr_cnt = kMostObjects;
  a.max_ep_tx_ctx = a.max_ep_rx_ctx = 1;
  a.mr_iov_limit = kMaxMrIov;
  a.max_err_data = sizeof(Name);
  a.caps = kDomainCaps;
  a.mr_cnt = kMostRegions;
}

}  // namespace

std::uint32_t find_host_library(const void* caller) {
  Dl_info where{};
  if (dladdr(caller, &where) == 0 || where.dli_fname == nullptr) return 0;
  void* host = dlopen(where.dli_fname, RTLD_NOLOAD | RTLD_LAZY);
  if (host == nullptr) host = dlopen(nullptr, RTLD_LAZY);  // libfabric is in the program itself
  if (host == nullptr) return 0;
  host_dup_info = reinterpret_cast<decltype(host_dup_info)>(dlsym(host, "fi_dupinfo"));
  host_free_info = reinterpret_cast<decltype(host_free_info)>(dlsym(host, "fi_freeinfo"));
  const auto version = reinterpret_cast<std::uint32_t (*)()>(dlsym(host, "fi_version"));
  const bool is_usable =
      host_dup_info != nullptr && host_free_info != nullptr && version != nullptr;
  return is_usable ? version() : 0;
}

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info) {
  *info = nullptr;
  if (hints != nullptr && !fits(*hints)) return -FI_ENODATA;
  fi_info* made = host_dup_info(nullptr);
  if (made == nullptr) return -FI_ENOMEM;
  const bool is_text = hints != nullptr && hints->addr_format == FI_ADDR_STR;
  made->caps = caps_for(hints);
  made->addr_format = is_text ? std::uint32_t{FI_ADDR_STR} : kAddressFormat;
  fill_transmit(*made->tx_attr, made->caps, hints != nullptr ? hints->tx_attr : nullptr);
  fill_receive(*made->rx_attr, made->caps, hints != nullptr ? hints->rx_attr : nullptr);
  fill_endpoint(*made->ep_attr, made->tx_attr->msg_order);
  fill_domain(*made->domain_attr, version, hints);
  made->fabric_attr->name = strdup("pm");
  // The calling library adds the name of the provider.
  made->fabric_attr->prov_version = FI_VERSION(1, 0);
  made->fabric_attr->api_version = version;
  if (const int error = fill_addresses(*made, {node, service, flags, hints}); error != 0) {
    host_free_info(made);
    return error;
  }
  *info = made;
  return 0;
}

}  // namespace score::pm::fi
