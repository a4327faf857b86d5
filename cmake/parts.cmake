# The optional parts of the build, which are left out where a package is missing:
#
#   score_part(PMIX_FOUND "scored-pmix: jobs of Open MPI" "libpmix-dev")
#
# The first word names the variable that is true where the part is built; the last one says what brings the
# part. score_print_parts() prints all of them, at the end of the configuration.

function(score_part variable part remedy)
  if(${variable})
    set_property(GLOBAL APPEND PROPERTY score_parts "built     ${part}")
  else()
    set_property(GLOBAL APPEND PROPERTY score_parts "left out  ${part} (install ${remedy})")
  endif()
endfunction()

function(score_print_parts)
  get_property(parts GLOBAL PROPERTY score_parts)
  list(SORT parts)
  message(STATUS "Optional parts:")
  foreach(part IN LISTS parts)
    message(STATUS "  ${part}")
  endforeach()
endfunction()
