#pragma once

// Manages the socket at which PMIx clients connect if it existed before libpmix started.

namespace score::pmix {

// The next internet socket that this process binds becomes this one, which is already listening:
// the tasks know its address, and the first of them has connected. Takes ownership of the
// descriptor. Connections wait until admit_clients(), because libpmix refuses clients of a job that
// it does not know yet. Only processes of this user and cgroup are admitted.
void adopt_listener(int descriptor);
void admit_clients();

}  // namespace score::pmix
