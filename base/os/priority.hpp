#pragma once

// Sets the CPU priority of a daemon among busy tasks. It is free of Asio.

namespace score::inline base {

// Sets the nice value (-20 first, 19 last) of this process, and of its session among all sessions.
// Where the kernel groups tasks by session (sched(7), autogroup), a process's own value counts only
// within its session. Children inherit both, until a setsid of their own. Returns false if the
// value of the process could not be set (a lower value than the present one needs CAP_SYS_NICE);
// the session's value is set in any case, if possible.
bool set_nice(int nice);

}  // namespace score::inline base
