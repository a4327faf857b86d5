// Memory of the daemon: pages that the switcher needs stay resident, pages that only the start
// needed are released. 64 daemons may share one machine.
#pragma once

namespace score::node {

// Pages of this process stay resident from their first use on, so that the switcher never waits for
// one. False if the limits do not allow it.
bool lock_memory();

// Releases the code and constants of the program and its libraries; pages that are used again come
// back from the page cache. Start and first handshake touch most of them, a running daemon few.
void release_constant_pages();

}  // namespace score::node
