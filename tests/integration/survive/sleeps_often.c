// This program computes for 20 us and sleeps for 50 us, again and again, as ranks do that wait for
// messages. usage: sleeps_often SECONDS
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  const double end = now() + atof(argc > 1 ? argv[1] : "1");
  const struct timespec pause = {0, 50000};
  while (now() < end) {
    const double until = now() + 20e-6;
    while (now() < until) continue;
    nanosleep(&pause, NULL);
  }
  return 0;
}
