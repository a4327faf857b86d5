// Puts the programs and the table into the kernel, for the whole machine. They are pinned, so that
// they outlive this process and every launcher; existing ones are kept. `egress` is set to the
// program for filter_interface(). Returns 0 or a negative errno, with the step that failed in
// `step`.
#pragma once

namespace score::ring_guard {

int install(int& egress, const char*& step);

}  // namespace score::ring_guard
