// The interface of the rings. 0 or a negative errno with what failed in `step`.
#pragma once

namespace score::ring_guard {

// Runs `program` on each frame that leaves `interface` of this process's network namespace. It
// stays when this process ends.
int filter_interface(const char* interface, int program, const char*& step);

// Adds the interface kRingInterface on top of `interface`, alone in the namespace `space`, and
// takes it into use. This process is in that namespace then.
int add_ring_interface(const char* interface, int space, const char*& step);

}  // namespace score::ring_guard
