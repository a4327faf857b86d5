#pragma once

// CPU priority of a daemon among busy tasks. Asio-free.

namespace score::inline base {

// Sets the nice value (-20 first, 19 last) of this process, and of its session among the others:
// where the kernel groups tasks by session (sched(7), autogroup), a process's own value counts only
// within its session. Children inherit both, until a setsid of their own. False if the process's
// own could not be set (needs CAP_SYS_NICE to go below the present one); the session's is tried in
// any case.
bool set_nice(int nice);

}  // namespace score::inline base
