// Opens an endpoint and gives it libfabric's tables.
#include "pmlib/fi/endpoint/ep.hpp"
#include "pmlib/fi/endpoint/ep_tables.hpp"

#include <algorithm>
#include <new>

namespace score::pm::fi {

namespace {

// These orders require a write's bytes to be in place before later operations.
constexpr std::uint64_t kWriteOrder =
    FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAW;

int close_endpoint(fid* f) {
  object_of<Ep>(f).close();
  return 0;
}

int bind_endpoint(fid* f, fid* other, std::uint64_t flags) {
  return object_of<Ep>(f).bind(other, flags);
}

int control_endpoint(fid* f, int command, void* argument) {
  if (argument == nullptr && command != FI_ENABLE) return -FI_EINVAL;
  Ep& ep = object_of<Ep>(f);
  switch (command) {
    case FI_ENABLE:
      return ep.enable();
    case FI_GETOPSFLAG:
      return ep.get_flags(*static_cast<std::uint64_t*>(argument));
    case FI_SETOPSFLAG:
      return ep.set_flags(*static_cast<const std::uint64_t*>(argument));
    default:
      return -FI_ENOSYS;
  }
}

}  // namespace

int Ep::open(Domain& domain, const fi_info& info, fid_ep** ep, void* context) {
  try {
    if (info.ep_attr != nullptr && info.ep_attr->type != FI_EP_UNSPEC &&
        info.ep_attr->type != FI_EP_RDM) {
      return -FI_ENOSYS;
    }
    auto made = std::make_shared<Ep>(domain, info, context);
    made->self_ = made;
    *ep = made.get();
    return 0;
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  }
}

Ep::Ep(Domain& domain, const fi_info& info, void* context)
    : fid_ep{},
      domain_(domain),
      link_(domain.link()),
      caps_(info.caps),
      send_flags_(info.tx_attr != nullptr ? info.tx_attr->op_flags : 0),
      receive_flags_(info.rx_attr != nullptr ? info.rx_attr->op_flags : 0),
      inject_bytes_(info.tx_attr != nullptr && info.tx_attr->inject_size > 0
                        ? std::min(info.tx_attr->inject_size, kInjectBytes)
                        : kInjectBytes),
      reports_unknown_senders_((info.caps & FI_SOURCE_ERR) != 0) {
  const std::uint64_t order = info.tx_attr != nullptr ? info.tx_attr->msg_order : 0;
  orders_writes_ = (order & kWriteOrder) != 0;
  if (orders_writes_ || (info.caps & FI_FENCE) != 0) order_ = std::make_unique<Order>();
  static fi_ops fid_ops = {sizeof(fi_ops), close_endpoint, bind_endpoint, control_endpoint,
                           no_op,          nullptr,        nullptr};
  this->fid = {FI_CLASS_EP, context, &fid_ops};
  set_tables(*this);
  ++domain_.users;
}

}  // namespace score::pm::fi
