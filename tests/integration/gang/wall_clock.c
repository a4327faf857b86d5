/* Preloaded into a daemon: its wall clock is as many seconds ahead as the file named in
 * WALL_CLOCK_AHEAD says; the file also counts the calls. Monotonic clocks are left alone. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct Clock {
  volatile long ahead; /* seconds */
  volatile long asked;
};

static struct Clock* wall;

__attribute__((constructor)) static void look(void) {
  const char* path = getenv("WALL_CLOCK_AHEAD");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  wall = mmap(NULL, sizeof *wall, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (wall == MAP_FAILED) abort();
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return result;
  now->tv_sec += wall->ahead;
  ++wall->asked;
  return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (out) *out = exact.tv_sec;
  return exact.tv_sec;
}
