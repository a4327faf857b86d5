// Declares libfabric's tables of an endpoint's functions.
#pragma once

#include "pmlib/fi/endpoint/ep.hpp"
#include "pmlib/fi/objects/no_ops.hpp"

namespace score::pm::fi {

// Points `ep` to the tables.
void set_tables(fid_ep& ep);

// Three files define these tables of data functions.
extern fi_ops_msg message_table;
extern fi_ops_tagged tagged_table;
extern fi_ops_rma access_table;
extern fi_ops_atomic atomic_table;

}  // namespace score::pm::fi
