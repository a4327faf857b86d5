// What the daemon keeps in memory: no page the switcher needs may be missing, none that only the
// start needed should stay. 64 daemons may share one machine.
#pragma once

namespace score::node {

// Pages of this process stay in memory from their first use on, so that the switcher never waits
// for one. False if the limits do not allow it.
bool lock_memory();

// Lets go of the program's and its libraries' code and constants; what is used again comes back
// from the page cache. Starting and the first handshake touch most of it, a running daemon little.
void release_constant_pages();

}  // namespace score::node
