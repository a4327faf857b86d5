#include "pmlib/fi/fabric.hpp"

#include "pmlib/fi/event_queue.hpp"
#include "pmlib/fi/objects/no_ops.hpp"
#include "pmlib/fi/objects/objects.hpp"

#include <cerrno>
#include <new>

namespace score::pm::fi {

namespace {

int close_fabric(fid* f) {
  delete &object_of<Fabric>(f);
  return 0;
}

int open_in_fabric(fid_fabric*, fi_info* info, fid_domain** domain, void* context) {
  return info != nullptr ? open_domain(*info, domain, context) : -FI_EINVAL;
}

int open_in_fabric2(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t,
                    void* context) {
  return open_in_fabric(fabric, info, domain, context);
}

int open_events(fid_fabric*, fi_eq_attr* attr, fid_eq** eq, void* context) {
  return eq != nullptr ? EventQueue::open(attr, eq, context) : -FI_EINVAL;
}

int try_wait(fid_fabric*, fid** fids, int count) {
  if (fids == nullptr && count > 0) return -FI_EINVAL;
  for (int i = 0; i < count; ++i) {
    if (fids[i] == nullptr) return -FI_EINVAL;
    int error = 0;
    if (fids[i]->fclass == FI_CLASS_EQ && object_of<EventQueue>(fids[i]).has_news()) {
      error = -FI_EAGAIN;
    }
    if (fids[i]->fclass == FI_CLASS_CQ) error = object_of<Cq>(fids[i]).try_wait();
    if (fids[i]->fclass == FI_CLASS_CNTR) error = object_of<Counter>(fids[i]).try_wait();
    if (error != 0) return error;
  }
  return 0;
}

fi_ops fabric_fid_ops = {sizeof(fi_ops), close_fabric, no_op, no_op, no_op, nullptr, nullptr};
fi_ops_fabric fabric_ops = {
    sizeof(fi_ops_fabric), open_in_fabric, no_op, open_events, no_op, try_wait, open_in_fabric2};

}  // namespace

int Fabric::open(fi_fabric_attr* attr, fid_fabric** fabric, void* context) {
  if (attr == nullptr || fabric == nullptr) return -FI_EINVAL;
  auto* made = new (std::nothrow) Fabric();
  if (made == nullptr) return -FI_ENOMEM;
  made->fid = {FI_CLASS_FABRIC, context, &fabric_fid_ops};
  made->ops = &fabric_ops;
  made->api_version = attr->api_version;
  *fabric = made;
  return 0;
}

}  // namespace score::pm::fi
