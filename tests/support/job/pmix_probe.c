/* A PMIx client without MPI, for tests. Its modes use the functions of a PMIx server:
 *   exchange   every rank puts a value, all fence, every rank reads the values of all others
 *   abort      rank 0 aborts with code 9, the others wait in a fence
 *   leave      rank 0 ends with exit code 0 after init, the others wait in a fence
 *   info       prints size, local peers and node of each rank
 *   modex      every rank puts a value and reads those of all others, without a collecting fence
 *   subset     the even ranks fence with data, twice, and read each other's values
 *   groups     the even ranks create two groups, and one of them again after its end
 *   spawn      every rank requests one more task twice, which is refused
 *   directory  prints where the server stores the data that the ranks of this node share
 *   topology   prints the file in which the server shares the host's topology
 *   devices    prints how many PCI devices that topology has
 *   names      publishes a name, waits for the next rank's name, withdraws its own
 *   garbage    writes random bytes to the server's port, then exchanges */
#include <pmix.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t self;

static int check(pmix_status_t status, const char* what) {
  if (status == PMIX_SUCCESS) return 1;
  fprintf(stderr, "%s: %s\n", what, PMIx_Error_string(status));
  exit(3);
}

static unsigned job_size(void) {
  pmix_proc_t job;
  pmix_value_t* value;
  unsigned size;
  PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
  check(PMIx_Get(&job, PMIX_JOB_SIZE, NULL, 0, &value), "size");
  size = value->data.uint32;
  PMIX_VALUE_RELEASE(value);
  return size;
}

static void fence(int collect) {
  bool yes = true;
  pmix_info_t info;
  pmix_proc_t job;
  PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  check(PMIx_Fence(&job, 1, collect ? &info : NULL, collect ? 1 : 0), "fence");
  PMIX_INFO_DESTRUCT(&info);
}

static void exchange(void) {
  char text[64];
  unsigned size = job_size(), rank;
  pmix_value_t mine, *theirs;
  snprintf(text, sizeof text, "value of %u", self.rank);
  PMIX_VALUE_LOAD(&mine, text, PMIX_STRING);
  check(PMIx_Put(PMIX_GLOBAL, "probe", &mine), "put");
  check(PMIx_Commit(), "commit");
  fence(1);
  for (rank = 0; rank < size; ++rank) {
    pmix_proc_t other;
    PMIX_LOAD_PROCID(&other, self.nspace, rank);
    check(PMIx_Get(&other, "probe", NULL, 0, &theirs), "get");
    snprintf(text, sizeof text, "value of %u", rank);
    if (strcmp(theirs->data.string, text) != 0) exit(4);
    PMIX_VALUE_RELEASE(theirs);
  }
  printf("rank %u of %u has all\n", self.rank, size);
}

static void print_info(void) {
  pmix_proc_t job, proc;
  pmix_value_t *peers, *node;
  unsigned size = job_size(), rank;
  PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
  check(PMIx_Get(&job, PMIX_LOCAL_PEERS, NULL, 0, &peers), "local peers");
  printf("rank %u of %u peers %s nodes", self.rank, size, peers->data.string);
  for (rank = 0; rank < size; ++rank) {
    PMIX_LOAD_PROCID(&proc, self.nspace, rank);
    check(PMIx_Get(&proc, PMIX_HOSTNAME, NULL, 0, &node), "host");
    printf(" %s", node->data.string);
  }
  printf("\n");
}

static void barrier(void) { fence(0); }

static void put_own(const char* key) {
  char text[64];
  pmix_value_t mine;
  snprintf(text, sizeof text, "value of %u", self.rank);
  PMIX_VALUE_LOAD(&mine, text, PMIX_STRING);
  check(PMIx_Put(PMIX_GLOBAL, key, &mine), "put");
  check(PMIx_Commit(), "commit");
}

static void get_of(unsigned rank, const char* key) {
  char text[64];
  pmix_value_t* theirs;
  pmix_proc_t other;
  PMIX_LOAD_PROCID(&other, self.nspace, rank);
  check(PMIx_Get(&other, key, NULL, 0, &theirs), "get");
  snprintf(text, sizeof text, "value of %u", rank);
  if (strcmp(theirs->data.string, text) != 0) exit(4);
  PMIX_VALUE_RELEASE(theirs);
}

static void modex(void) {
  unsigned size = job_size(), rank;
  put_own("direct");
  for (rank = 0; rank < size; ++rank) get_of(rank, "direct");
  barrier();
  printf("rank %u of %u has all\n", self.rank, size);
}

static void subset(void) {
  unsigned size = job_size(), rank, count = 0, turn;
  pmix_proc_t some[64];
  bool yes = true;
  pmix_info_t info;
  for (rank = 0; rank < size; rank += 2) {
    PMIX_LOAD_PROCID(&some[count], self.nspace, rank);
    ++count;
  }
  PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  for (turn = 0; turn < 2 && self.rank % 2 == 0; ++turn) {
    char key[16];
    snprintf(key, sizeof key, "turn %u", turn);
    put_own(key);
    check(PMIx_Fence(some, count, &info, 1), "fence of some");
    for (rank = 0; rank < size; rank += 2) get_of(rank, key);
  }
  barrier();
  printf("rank %u of %u fenced\n", self.rank, size);
}

/* Returns the number that all members of a new group receive. */
static size_t make_group(const char* name, const pmix_proc_t* members, size_t count) {
  bool yes = true;
  size_t i, number, context = 0;
  pmix_info_t info, *results = NULL;
  PMIX_INFO_LOAD(&info, PMIX_GROUP_ASSIGN_CONTEXT_ID, &yes, PMIX_BOOL);
  check(PMIx_Group_construct(name, members, count, &info, 1, &results, &number), "construct");
  for (i = 0; i < number; ++i) {
    if (PMIX_CHECK_KEY(&results[i], PMIX_GROUP_CONTEXT_ID)) context = results[i].value.data.size;
  }
  PMIX_INFO_FREE(results, number);
  return context;
}

/* Members compare the numbers of their groups, which must be equal within a group and different
 * between groups. */
static void groups(void) {
  const char* names[] = {"one", "two", "one"};
  size_t contexts[3];
  unsigned size = job_size(), rank, count = 0, turn, i;
  pmix_proc_t some[64];
  char key[16];
  pmix_value_t mine, *theirs;
  for (rank = 0; rank < size; rank += 2) {
    PMIX_LOAD_PROCID(&some[count], self.nspace, rank);
    ++count;
  }
  for (turn = 0; turn < 3 && self.rank % 2 == 0; ++turn) {
    contexts[turn] = make_group(names[turn], some, count);
    for (i = 0; i < turn; ++i)
      if (contexts[i] == contexts[turn] || contexts[i] == 0) exit(4);
    snprintf(key, sizeof key, "group %u", turn);
    PMIX_VALUE_LOAD(&mine, &contexts[turn], PMIX_SIZE);
    check(PMIx_Put(PMIX_GLOBAL, key, &mine), "put");
    check(PMIx_Commit(), "commit");
    if (turn != 1) check(PMIx_Group_destruct(names[turn], NULL, 0), "destruct");
  }
  fence(1);
  for (turn = 0; turn < 3 && self.rank % 2 == 0; ++turn) {
    snprintf(key, sizeof key, "group %u", turn);
    check(PMIx_Get(&some[0], key, NULL, 0, &theirs), "get");
    if (theirs->data.size != contexts[turn]) exit(5);
    PMIX_VALUE_RELEASE(theirs);
  }
  printf("rank %u of %u grouped\n", self.rank, size);
}

static void publish_own(const char* key) {
  char text[64];
  pmix_info_t info;
  snprintf(text, sizeof text, "port of %u", self.rank);
  PMIX_INFO_LOAD(&info, key, text, PMIX_STRING);
  check(PMIx_Publish(&info, 1), "publish");
  if (PMIx_Publish(&info, 1) == PMIX_SUCCESS) puts("published twice");
  PMIX_INFO_DESTRUCT(&info);
}

/* Looks up a name that exists, perhaps only later, and one that never exists. */
static void look_up(const char* key, unsigned owner) {
  char text[64];
  int all = 0;
  pmix_info_t wait;
  pmix_pdata_t found;
  snprintf(text, sizeof text, "port of %u", owner);
  PMIX_INFO_LOAD(&wait, PMIX_WAIT, &all, PMIX_INT);
  PMIX_PDATA_CONSTRUCT(&found);
  PMIX_LOAD_KEY(found.key, key);
  check(PMIx_Lookup(&found, 1, &wait, 1), "lookup");
  if (found.proc.rank != owner || strcmp(found.value.data.string, text) != 0) exit(4);
  PMIX_PDATA_DESTRUCT(&found);
  PMIX_PDATA_CONSTRUCT(&found);
  PMIX_LOAD_KEY(found.key, "missing");
  if (PMIx_Lookup(&found, 1, NULL, 0) != PMIX_ERR_NOT_FOUND) exit(6);
  PMIX_INFO_DESTRUCT(&wait);
}

static void names(void) {
  char own[32], next[32];
  char* mine[] = {own, NULL};
  const unsigned size = job_size(), other = (self.rank + 1) % size;
  pmix_pdata_t found;
  snprintf(own, sizeof own, "service %u", self.rank);
  snprintf(next, sizeof next, "service %u", other);
  publish_own(own);
  look_up(next, other);
  barrier();
  check(PMIx_Unpublish(mine, NULL, 0), "unpublish");
  barrier();
  PMIX_PDATA_CONSTRUCT(&found);
  PMIX_LOAD_KEY(found.key, next);
  if (PMIx_Lookup(&found, 1, NULL, 0) != PMIX_ERR_NOT_FOUND) exit(7);
  printf("rank %u of %u knows the next\n", self.rank, size);
}

static void spawn(void) {
  char* words[] = {"/bin/true", NULL};
  char child[PMIX_MAX_NSLEN + 1];
  int turn;
  pmix_app_t app;
  pmix_status_t status;
  PMIX_APP_CONSTRUCT(&app);
  app.cmd = words[0];
  app.argv = words;
  app.maxprocs = 1;
  for (turn = 0; turn < 2; ++turn) {
    status = PMIx_Spawn(NULL, 0, &app, 1, child);
    if (status != PMIX_ERR_NOT_SUPPORTED) {
      fprintf(stderr, "spawn: %s\n", PMIx_Error_string(status));
      exit(4);
    }
  }
  printf("rank %u of %u goes on\n", self.rank, job_size());
}

static void print_directory(void) {
  pmix_proc_t job;
  pmix_value_t* value;
  PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
  check(PMIx_Get(&job, PMIX_NSDIR, NULL, 0, &value), "directory");
  if (access(value->data.string, F_OK) != 0) exit(8);
  printf("%s", value->data.string);
  PMIX_VALUE_RELEASE(value);
}

static void print_topology(void) {
  pmix_proc_t job;
  pmix_value_t* value;
  PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
  check(PMIx_Get(&job, PMIX_HWLOC_SHMEM_FILE, NULL, 0, &value), "topology");
  if (access(value->data.string, R_OK) != 0) exit(8);
  printf("%s", value->data.string);
  PMIX_VALUE_RELEASE(value);
}

static void print_devices(void) {
  pmix_proc_t job;
  pmix_value_t* value;
  const char* at;
  int count = 0;
  PMIX_LOAD_PROCID(&job, self.nspace, PMIX_RANK_WILDCARD);
  check(PMIx_Get(&job, PMIX_HWLOC_XML_V2, NULL, 0, &value), "topology as text");
  for (at = value->data.string; (at = strstr(at, "\"PCIDev\"")) != NULL; ++at) ++count;
  printf("%d devices, %s", count, strstr(value->data.string, "\"Core\"") ? "cores" : "no cores");
  PMIX_VALUE_RELEASE(value);
}

static void send_garbage(void) {
  const char* port = strrchr(getenv("PMIX_SERVER_URI4"), ':');
  struct sockaddr_in address = {0};
  unsigned char bytes[4096];
  int turn;
  unsigned i, state = 1;
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)atoi(port + 1));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (turn = 0; turn < 20; ++turn) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    for (i = 0; i < sizeof bytes; ++i)
      bytes[i] = (unsigned char)((state = state * 1103515245u + 12345u) >> 16);
    if (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) exit(5);
    if (send(fd, bytes, (size_t)(turn * 200), MSG_NOSIGNAL) < 0) perror("send");
    close(fd);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "exchange";
  if (strcmp(mode, "garbage") == 0) send_garbage();
  check(PMIx_Init(&self, NULL, 0), "init");
  if (strcmp(mode, "abort") == 0 && self.rank == 0) PMIx_Abort(9, "no more", NULL, 0);
  if (strcmp(mode, "leave") == 0 && self.rank == 0) _exit(0);
  if (strcmp(mode, "info") == 0) {
    print_info();
  } else if (strcmp(mode, "modex") == 0) {
    modex();
  } else if (strcmp(mode, "subset") == 0) {
    subset();
  } else if (strcmp(mode, "groups") == 0) {
    groups();
  } else if (strcmp(mode, "names") == 0) {
    names();
  } else if (strcmp(mode, "spawn") == 0) {
    spawn();
  } else if (strcmp(mode, "directory") == 0) {
    print_directory();
  } else if (strcmp(mode, "topology") == 0) {
    print_topology();
  } else if (strcmp(mode, "devices") == 0) {
    print_devices();
  } else {
    exchange();
    exchange();
  }
  check(PMIx_Finalize(NULL, 0), "finalize");
  return 0;
}
