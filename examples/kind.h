/* Shared by the MPI examples: options, time, and a way to wait that leaves the cores to other
 * ranks.
 *
 * MPI's blocking calls poll without pause. That is right if every rank has a core of its own. With
 * 64 ranks on 2 cores, waiting ranks would take the time that the working rank needs. So the
 * examples use nonblocking calls and sleep between tests; the sleeps become longer while nothing
 * happens. */
#ifndef SCORED_EXAMPLES_KIND_H
#define SCORED_EXAMPLES_KIND_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
  double seconds; /* run for this long; 0: count iterations instead */
  long iterations;
  long size; /* each program defines its meaning */
};

static void usage(const char* program, const char* size_name) {
  fprintf(stderr, "usage: %s [--seconds S | --iterations N]%s%s\n", program, size_name ? " --" : "",
          size_name ? size_name : "");
  exit(2);
}

/* size_name: name of the option that sets size, or NULL. Exits with 2 if an option is wrong. */
static inline struct options read_options(int argc, char** argv, struct options options,
                                          const char* size_name) {
  for (int i = 1; i < argc; i += 2) {
    char* end = NULL;
    const char* name = strncmp(argv[i], "--", 2) == 0 ? argv[i] + 2 : "";
    const double value = i + 1 < argc ? strtod(argv[i + 1], &end) : -1;
    if (end == NULL || *end != '\0' || !(value >= 0) || value > 1e12) usage(argv[0], size_name);
    if (strcmp(name, "seconds") == 0) {
      options.seconds = value;
    } else if (strcmp(name, "iterations") == 0) {
      options.iterations = (long)value;
      options.seconds = 0;
    } else if (size_name != NULL && strcmp(name, size_name) == 0 && value >= 1) {
      options.size = (long)value;
    } else {
      usage(argv[0], size_name);
    }
  }
  return options;
}

/* Returns 1 if the program ends after `done` iterations. Only rank 0 calls it, so that all agree.
 */
static inline int is_over(const struct options* options, double start, long done) {
  if (options->seconds > 0) return MPI_Wtime() - start >= options->seconds;
  return done >= options->iterations;
}

static inline void kind_wait(MPI_Request* request) {
  const long shortest_ns = 20000, longest_ns = 2000000;
  long pause_ns = shortest_ns;
  int done = 0;
  while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) {
    const struct timespec pause = {0, pause_ns};
    nanosleep(&pause, NULL);
    if (pause_ns < longest_ns) pause_ns *= 2;
  }
}

/* Makes all ranks leave together, because MPI_Finalize polls until the last rank has called it. */
static inline int finish(int good) {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  kind_wait(&request);
  MPI_Finalize();
  return good ? 0 : 1;
}

#endif
