#pragma once
// What people search for later goes to systemd's journal with fields: who asked for what, jobs that
// start and end, nodes that come and go, late switches. `journalctl JOB_ID=7` then finds it, and
// `journalctl -x` explains it from deploy/systemd/scored.catalog. The lines are those of
// base/os/log.hpp; what they are of is told by their verb. Asio-free.

#include "base/os/log.hpp"

#include <string>
#include <string_view>

namespace score {

inline constexpr std::string_view kJournalSocket = "/run/systemd/journal/socket";

// The line as an entry in the journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), one
// datagram: MESSAGE, PRIORITY, SYSLOG_IDENTIFIER, MESSAGE_ID, and of JOB_ID, NODE, SLOT, RANK,
// USER_NAME, ACTION, VALUE, VIA, STATE, REASON, LATE_US and HELD_BACK those that the line has.
// Empty: a line of no known kind.
[[nodiscard]] std::string journal_entry(LogLevel level, std::string_view line);

// Whether `fd` is the stream that the service manager names in $JOURNAL_STREAM, "device:inode"
// (systemd.exec(5)). nullptr: it names none.
[[nodiscard]] bool is_journal(int fd, const char* journal_stream);

// From now on lines of known kinds go to this socket, waiting for it as stderr would; all others,
// and those that cannot be sent, go to stderr as before. For daemons whose stderr is the journal,
// before other threads log. Undone by set_log_sink({}). A path too long for a socket: all lines go
// to stderr.
void log_to_journal(std::string_view socket_path = kJournalSocket);

// The same, if stderr is the journal ($JOURNAL_STREAM).
void log_to_journal_if_started_by_it();

}  // namespace score
