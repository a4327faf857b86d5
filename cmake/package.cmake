# `ninja package`: a tarball with the layout of the packages (/usr, /etc, /lib/systemd), for other distributions.
set(CPACK_GENERATOR TXZ)
set(CPACK_PACKAGE_FILE_NAME scored-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_SET_DESTDIR ON)  # /etc and /lib are not below the prefix
set(CPACK_INCLUDE_TOPLEVEL_DIRECTORY OFF)
set(CPACK_STRIP_FILES ON)
include(CPack)
