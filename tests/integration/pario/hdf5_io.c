/* Parallel HDF5: all ranks write their rows of two datasets collectively, close the file, and
 * read independently what another rank wrote. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRows = 64, kColumns = 700 };

static int rank, size;

static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static hid_t open_or_create(const char* path, int creates) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
  const hid_t file = creates ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                             : H5Fopen(path, H5F_ACC_RDONLY, access);
  check(file >= 0, "cannot open the file");
  H5Pclose(access);
  return file;
}

static void transfer(hid_t dataset, int owner, int* rows, int writes) {
  const hsize_t start[2] = {(hsize_t)owner * kRows, 0};
  const hsize_t count[2] = {kRows, kColumns};
  const hid_t memory = H5Screate_simple(2, count, NULL);
  const hid_t space = H5Dget_space(dataset);
  const hid_t plist = H5Pcreate(H5P_DATASET_XFER);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
  H5Pset_dxpl_mpio(plist, writes ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
  const herr_t result = writes ? H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, plist, rows)
                               : H5Dread(dataset, H5T_NATIVE_INT, memory, space, plist, rows);
  check(result >= 0, writes ? "H5Dwrite" : "H5Dread");
  H5Pclose(plist);
  H5Sclose(space);
  H5Sclose(memory);
}

int main(int argc, char** argv) {
  char path[4096];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  snprintf(path, sizeof path, "%s/data.h5", argv[1 + rank % (argc - 1)]);
  int* rows = malloc(sizeof(int) * kRows * kColumns);
  for (int i = 0; i < kRows * kColumns; ++i) rows[i] = rank * 1000003 + i;

  hid_t file = open_or_create(path, 1);
  const hsize_t extent[2] = {(hsize_t)size * kRows, kColumns};
  const hsize_t chunk[2] = {kRows / 2, kColumns / 7};
  const hid_t space = H5Screate_simple(2, extent, NULL);
  const hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(chunked, 2, chunk);
  hid_t plain =
      H5Dcreate2(file, "plain", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  hid_t tiles = H5Dcreate2(file, "tiles", H5T_NATIVE_INT, space, H5P_DEFAULT, chunked, H5P_DEFAULT);
  check(plain >= 0 && tiles >= 0, "H5Dcreate2");
  transfer(plain, rank, rows, 1);
  transfer(tiles, rank, rows, 1);
  H5Dclose(plain);
  H5Dclose(tiles);
  H5Pclose(chunked);
  H5Sclose(space);
  check(H5Fclose(file) >= 0, "H5Fclose");
  MPI_Barrier(MPI_COMM_WORLD);

  file = open_or_create(path, 0);
  const char* const names[] = {"plain", "tiles"};
  const int other = (rank + 1) % size;
  for (int k = 0; k < 2; ++k) {
    const hid_t dataset = H5Dopen2(file, names[k], H5P_DEFAULT);
    check(dataset >= 0, "H5Dopen2");
    transfer(dataset, other, rows, 0);
    for (int i = 0; i < kRows * kColumns; ++i)
      check(rows[i] == other * 1000003 + i, "the rows of another rank are wrong");
    H5Dclose(dataset);
  }
  H5Fclose(file);
  if (rank == 0) printf("%d ranks: all data is right\n", size);
  free(rows);
  MPI_Finalize();
  return 0;
}
