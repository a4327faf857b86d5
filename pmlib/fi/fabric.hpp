// Declares the fabric, the topmost object, and the function that opens a domain.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

namespace score::pm::fi {

struct Fabric : fid_fabric {
  using Base = fid_fabric;
  static int open(fi_fabric_attr* attr, fid_fabric** fabric, void* context);
};

// Behaves as fi_domain(3).
int open_domain(const fi_info& info, fid_domain** domain, void* context);

}  // namespace score::pm::fi
