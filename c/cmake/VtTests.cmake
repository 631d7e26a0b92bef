# The conformance suite and the examples, and how ctest runs them.

set(VT_TEST_ROWS cpu-async cpu-async-delays cpu-sync toy)

# Tests use the shared library where there is one: it has only the public names.
function(vt_add_program target)
  add_executable(${target} ${ARGN})
  vt_set_flags(${target})
  target_compile_options(${target} PRIVATE -UNDEBUG)
  target_link_libraries(${target} PRIVATE vllm_vt::vllm_vt Threads::Threads m)
endfunction()

function(vt_add_tests)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/*.c")
  vt_add_program(vt_conformance ${sources})
  target_compile_definitions(vt_conformance PRIVATE _GNU_SOURCE)
  foreach(row ${VT_TEST_ROWS})
    add_test(NAME conformance.${row} COMMAND vt_conformance --row ${row})
    set_tests_properties(conformance.${row} PROPERTIES TIMEOUT 900)
  endforeach()
  # A row that the suite has and VT_TEST_ROWS lacks would go unnoticed.
  list(JOIN VT_TEST_ROWS "\n" rows)
  add_test(NAME conformance.rows COMMAND sh -c "\"$1\" --list | cut -d/ -f1 | LC_ALL=C sort -u" sh $<TARGET_FILE:vt_conformance>)
  set_tests_properties(conformance.rows PROPERTIES PASS_REGULAR_EXPRESSION "^${rows}\n$")
endfunction()

# Every C file of examples/ is a program.
function(vt_add_examples)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/examples/*.c")
  foreach(source ${sources})
    get_filename_component(name "${source}" NAME_WE)
    vt_add_program(${name} "${source}")
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY examples)
    add_test(NAME example.${name} COMMAND ${name} WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/..")
    set_tests_properties(example.${name} PROPERTIES TIMEOUT 300)
  endforeach()
endfunction()
