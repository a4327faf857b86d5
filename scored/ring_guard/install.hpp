// Puts the programs and the table into the kernel, for the whole machine, pinned, so that they
// outlive this process and every launcher; what is there already stays. `egress` becomes the
// program for filter_interface(). 0 or a negative errno with what failed in `step`.
#pragma once

namespace score::ring_guard {

int install(int& egress, const char*& step);

}  // namespace score::ring_guard
