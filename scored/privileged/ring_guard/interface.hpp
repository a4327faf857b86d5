// Prepares the interface of the rings. The functions return 0 or a negative errno, with the step
// that failed in `step`.
#pragma once

namespace score::ring_guard {

// Runs `program` on each frame that leaves `interface` of this process's network namespace. It
// stays when this process ends.
int filter_interface(const char* interface, int program, const char*& step);

// Adds the interface kRingInterface on top of `interface`, alone in the namespace `space`, and sets
// it up. This process is in that namespace afterwards.
int add_ring_interface(const char* interface, int space, const char*& step);

}  // namespace score::ring_guard
