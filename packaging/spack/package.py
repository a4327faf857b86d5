"""A recipe for Spack. In a repository of yours: packages/scored/package.py; `spack dev-build scored@main` in the tree."""
import os

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator

from spack.package import *


class Scored(CMakePackage):
    """Cluster operating environment that runs parallel programs by gang scheduling: all ranks of a job run in the
    same time slices on all nodes."""

    license("BSD-3-Clause")

    version("main")

    variant("fuse", default=True, description="Striped volumes can be mounted")
    variant("pmix", default=True, description="Jobs of Open MPI and other programs with PMIx")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type=("build", "run"))

    depends_on("boost@1.81:")
    depends_on("cli11")
    depends_on("elfutils")
    depends_on("fmt")
    depends_on("libfabric")
    depends_on("libfuse@3:", when="+fuse")
    depends_on("liburing")
    depends_on("lmdb")
    depends_on("ncurses")
    depends_on("openssl")
    depends_on("pmix@4:", when="+pmix")
    depends_on("prometheus-cpp")
    depends_on("protobuf")
    depends_on("sqlite")
    depends_on("systemd")
    depends_on("tomlplusplus")
    depends_on("zlib-api")

    requires("platform=linux", msg="Scored needs Linux")
    conflicts("%gcc@:11", msg="Scored needs C++23")

    generator("ninja")

    def cmake_args(self):
        return [self.define("SCORE_STATIC_LIBS", False), self.define("SCORED_WEB", "off")]

    def install(self, spec, prefix):
        """Leaves out what has an absolute path outside of the prefix: units and configuration."""
        stage = join_path(self.stage.path, "installed")
        with working_dir(self.build_directory):
            cmake("--install", ".", extra_env={"DESTDIR": stage})
        install_tree(stage + os.path.abspath(prefix), prefix)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_install(self):
        Executable(self.prefix.bin.score)("virtual", "--nodes", "2", "--", "scrun", "-N", "2", "true")
