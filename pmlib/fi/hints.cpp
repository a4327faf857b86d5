#include "pmlib/fi/hints.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace score::pm::fi {

namespace {

constexpr std::uint64_t kTransmitFlags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
                                         FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                                         FI_MATCH_COMPLETE;
constexpr std::uint64_t kReceiveFlags = FI_COMPLETION | FI_MULTI_RECV;

bool is_subset(std::uint64_t wanted, std::uint64_t offered) {
  return (wanted & ~offered) == 0;
}

bool fits_transmit(const fi_tx_attr* a) {
  return a == nullptr || (is_subset(a->caps, kCaps) && is_subset(a->op_flags, kTransmitFlags) &&
                          is_subset(a->msg_order, kOrder | kOrderOnDemand) && a->comp_order == 0 &&
                          a->inject_size <= inject_bytes() && a->size <= kQueueSize &&
                          a->iov_limit <= kMaxIov && a->rma_iov_limit <= kMaxRemoteIov);
}

bool fits_receive(const fi_rx_attr* a) {
  return a == nullptr ||
         (is_subset(a->caps, kCaps) && is_subset(a->op_flags, kReceiveFlags) &&
          is_subset(a->msg_order, kOrder | kOrderOnDemand) && a->comp_order == 0 &&
          a->total_buffered_recv == 0 && a->size <= kQueueSize && a->iov_limit <= kMaxIov);
}

bool fits_endpoint(const fi_ep_attr* a, std::uint64_t order) {
  if (a == nullptr) return true;
  if (a->type != FI_EP_UNSPEC && a->type != FI_EP_RDM) return false;
  if (a->protocol != FI_PROTO_UNSPEC && a->protocol != kProtocol) return false;
  return a->max_msg_size <= kMostBytes && a->msg_prefix_size == 0 && a->tx_ctx_cnt <= 1 &&
         a->rx_ctx_cnt <= 1 && a->auth_key_size == 0 &&
         a->max_order_raw_size <= ordered_bytes(order, kReadAfterWrite) &&
         a->max_order_war_size <= kAtomicBytes &&
         a->max_order_waw_size <= ordered_bytes(order, kWriteAfterWrite);
}

bool fits_domain(const fi_domain_attr* a) {
  if (a == nullptr) return true;
  if (a->name != nullptr && std::strcmp(a->name, "pm") != 0) return false;
  const std::size_t most =
      std::max({a->cq_cnt, a->ep_cnt, a->tx_ctx_cnt, a->rx_ctx_cnt, a->cntr_cnt});
  return most <= kMostObjects && a->max_ep_tx_ctx <= 1 && a->max_ep_rx_ctx <= 1 &&
         a->max_ep_stx_ctx == 0 && a->max_ep_srx_ctx == 0 && is_subset(a->caps, kDomainCaps) &&
         a->mr_key_size <= 8 && a->cq_data_size <= 8 && a->mr_iov_limit <= kMaxMrIov &&
         a->mr_cnt <= kMostRegions && a->max_err_data <= sizeof(Name) && a->auth_key_size == 0;
}

bool fits_fabric(const fi_fabric_attr* a) {
  return a == nullptr || a->name == nullptr || std::strcmp(a->name, "pm") == 0;
}

}  // namespace

std::size_t inject_bytes() {
  // MPICH reads its threshold from variables of these names (mpir_cvars).
  for (const char* name : {"MPIR_CVAR_CH4_OFI_EAGER_THRESHOLD",
                           "MPIR_PARAM_CH4_OFI_EAGER_THRESHOLD", "MPICH_CH4_OFI_EAGER_THRESHOLD"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    char* end = nullptr;
    const long bytes = std::strtol(text, &end, 10);
    if (end == text || bytes < 0) return kInjectBytes;  // a negative value is no threshold
    return std::min(kInjectBytes, static_cast<std::size_t>(bytes));
  }
  return kInjectBytes;
}

std::size_t ordered_bytes(std::uint64_t order, std::uint64_t kinds) {
  return (order & kinds) != 0 ? kMostBytes : kAtomicBytes;
}

bool fits(const fi_info& hints) {
  if (!is_subset(hints.caps, kCaps)) return false;
  if (hints.addr_format != FI_FORMAT_UNSPEC && hints.addr_format != kAddressFormat &&
      hints.addr_format != FI_ADDR_STR) {
    return false;
  }
  const std::uint64_t order = hints.tx_attr != nullptr ? hints.tx_attr->msg_order : 0;
  return fits_transmit(hints.tx_attr) && fits_receive(hints.rx_attr) &&
         fits_endpoint(hints.ep_attr, order) && fits_domain(hints.domain_attr) &&
         fits_fabric(hints.fabric_attr);
}

}  // namespace score::pm::fi
