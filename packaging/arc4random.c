// Functions that glibc has from 2.36 on, for programs that also run with an older one. Only
// packaging/tarball.sh links this file.
#include <stddef.h>
#include <sys/random.h>

#pragma GCC visibility push(hidden)

void arc4random_buf(void* buffer, size_t size) {
  char* next = buffer;
  while (size > 0) {
    const ssize_t got = getrandom(next, size, 0);
    if (got <= 0) continue;  // a signal interrupted the call
    next += got;
    size -= (size_t)got;
  }
}

unsigned arc4random(void) {
  unsigned value = 0;
  arc4random_buf(&value, sizeof value);
  return value;
}
