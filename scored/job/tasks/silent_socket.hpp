#pragma once
// Declares the question that a checkpoint asks of a socket between this process and a task.

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace score::shepherd {

// Returns true if neither end of the Unix socket has bytes that the other has not read. Images do
// not contain such bytes.
inline bool is_silent(int socket) {
  int unsent = 0;
  int unread = 0;
  const bool is_known =
      ioctl(socket, SIOCOUTQ, &unsent) == 0 && ioctl(socket, SIOCINQ, &unread) == 0;
  return !is_known || (unsent == 0 && unread == 0);
}

}  // namespace score::shepherd
