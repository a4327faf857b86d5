#pragma once

// The socket at which PMIx clients connect, where it was there before libpmix.

namespace score::pmix {

// The next internet socket that this process binds becomes this one, which listens already: the
// tasks know its address, and the first of them has connected. Takes the descriptor. Connections
// wait until admit_clients(): libpmix refuses clients of a job that it does not know yet.
void adopt_listener(int descriptor);
void admit_clients();

}  // namespace score::pmix
