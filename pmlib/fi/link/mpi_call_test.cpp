#include "pmlib/fi/link/mpi_call.hpp"

#include <gtest/gtest.h>

namespace score::pm::fi {
namespace {

TEST(MpiCall, OnlyFunctionsThatNeedMessagesWait) {
  EXPECT_EQ(wait_of("MPI_Recv"), MpiWait::Receive);
  EXPECT_EQ(wait_of("MPI_Recv_c"), MpiWait::Receive);
  EXPECT_EQ(wait_of("MPI_Waitall"), MpiWait::Request);
  EXPECT_EQ(wait_of("MPI_Barrier"), MpiWait::Collective);
  EXPECT_EQ(wait_of("MPI_Win_fence"), MpiWait::Collective);
  EXPECT_EQ(wait_of("MPI_Get_accumulate"), MpiWait::Memory);
  for (const char* name : {"MPI_Win_flush", "MPI_Win_lock", "MPI_Win_test", "MPI_Put_c"}) {
    EXPECT_EQ(wait_of(name), MpiWait::Memory) << "one's own memory needs no message: " << name;
  }
  for (const char* name : {"MPI_Test", "MPI_Testall", "MPI_Iprobe", "MPI_Improbe", "MPI_Init",
                           "MPI_Finalize", "MPI_File_write", "MPI_Comm_accept", "MPI_", "", "Recv",
                           "MPI_Receive", "MPI_Get_count", "pmi_barrier"}) {
    EXPECT_EQ(wait_of(name), MpiWait::None) << name;
  }
}

TEST(MpiCall, NoneIsFoundOutsideMpi) {
  const MpiCall call = find_mpi_call();
  EXPECT_EQ(call.name[0], '\0');
  EXPECT_EQ(call.wait, MpiWait::None);
}

TEST(MpiCall, TagsIdentifyReceivesOfTheLibrary) {
  constexpr std::uint64_t kContext = std::uint64_t{6} << 32;
  const TagFilter mpich = own_receives(MpiImplementation::Mpich);
  EXPECT_TRUE(mpich.takes(kContext | 0x8000'0000 | 2, 0));
  EXPECT_FALSE(mpich.takes(kContext | 2, 0));
  EXPECT_FALSE(mpich.takes(kContext | 0x8000'0000, 0xffff'ffff)) << "any";
  const TagFilter open_mpi = own_receives(MpiImplementation::OpenMpi);
  EXPECT_TRUE(open_mpi.takes(kContext | 0xffff'fff0, 0));
  EXPECT_FALSE(open_mpi.takes(kContext | 77, 0x7fff'ffff));
  EXPECT_FALSE(own_receives(MpiImplementation::Other).takes(0, 0));
  EXPECT_TRUE(TagFilter{}.takes(77, 0x7fff'ffff));
}

TEST(MpiCall, OnlyTagsOfTheProgramAreRead) {
  constexpr std::uint64_t kContext = std::uint64_t{6} << 32;
  EXPECT_EQ(mpi_tag(MpiImplementation::Mpich, kContext | 77, 0), 77);
  EXPECT_EQ(mpi_tag(MpiImplementation::Mpich, kContext | 77, 0x7fff'ffff), -1) << "any";
  EXPECT_EQ(mpi_tag(MpiImplementation::Mpich, kContext | 0x8000'0000 | 2, 0), -1) << "its own";
  EXPECT_EQ(mpi_tag(MpiImplementation::OpenMpi, kContext | 77, 0), 77);
  EXPECT_EQ(mpi_tag(MpiImplementation::OpenMpi, kContext | 0xffff'fff0, 0), -1) << "its own";
  EXPECT_EQ(mpi_tag(MpiImplementation::Other, 77, 0), -1);
}

}  // namespace
}  // namespace score::pm::fi
