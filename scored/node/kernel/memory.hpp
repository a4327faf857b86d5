// Manages the memory of the daemon. Pages that the switcher needs stay resident, and pages that
// only the start needed are released. 64 daemons may share one machine.
#pragma once

namespace score::node {

// Keeps pages of this process resident from their first use on, so that the switcher never waits
// for a page. Returns false if the limits do not allow it.
bool lock_memory();

// Releases the code and constants of the program and its libraries; pages that are used again
// return from the page cache. The start and the first handshake touch most of them, a running
// daemon few.
void release_constant_pages();

}  // namespace score::node
