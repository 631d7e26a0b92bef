# The conformance suite and the examples, and how ctest runs them.

set(VT_TEST_ROWS cpu-async cpu-async-delays cpu-sync plugin toy)

# Tests use the shared library where there is one: it has only the public names.
function(vt_add_program target)
  add_executable(${target} ${ARGN})
  vt_set_flags(${target})
  target_compile_options(${target} PRIVATE -UNDEBUG)
  target_link_libraries(${target} PRIVATE vllm_vt::vllm_vt Threads::Threads m)
endfunction()

# A backend in a shared library. It links nothing of ours: the program that loads it has the runtime, and lets it see the names.
function(vt_add_plugin target)
  add_library(${target} MODULE ${ARGN})
  vt_set_flags(${target})
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".so")
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_include_directories(${target} PRIVATE include)
endfunction()

# An engine in a shared library, and a program that knows nothing of ours and loads it.
function(vt_add_process_tests)
  vt_add_plugin(vt_session tests/process/session.c tests/toy_backend.c)
  target_link_libraries(vt_session PRIVATE vllm_vt::vllm_vt Threads::Threads m)
  target_link_options(vt_session PRIVATE -Wl,-z,nodelete)
  add_executable(vt_loader tests/process/loader.c)
  vt_set_flags(vt_loader)
  target_compile_definitions(vt_loader PRIVATE _GNU_SOURCE)
  target_link_libraries(vt_loader PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  add_dependencies(vt_conformance vt_session vt_loader)
endfunction()

# The suite once more under the validation layer, where a report that a case doesn't declare fails it. Its own cases run in every
# build; here only where nothing else slows it down.
function(vt_add_validated_tests)
  if(NOT VT_SANITIZE)
    foreach(row cpu-async cpu-sync plugin toy)
      add_test(NAME validated.${row} COMMAND vt_conformance --row ${row})
      set_tests_properties(validated.${row} PROPERTIES TIMEOUT 900 ENVIRONMENT VT_VALIDATE=1)
    endforeach()
  endif()
endfunction()

# The reductions in each instruction set, the best one aside. What the machine lacks falls back to what it has.
function(vt_add_isa_tests)
  foreach(isa sse2 avx2)
    add_test(NAME conformance.isa.${isa} COMMAND vt_conformance --row cpu-sync --filter reduc)
    set_tests_properties(conformance.isa.${isa} PROPERTIES TIMEOUT 300 ENVIRONMENT "VT_CPU_ISA=${isa}")
  endforeach()
  add_test(NAME isa.unknown COMMAND vt_conformance --row cpu-sync --filter known_good)
  set_tests_properties(isa.unknown PROPERTIES ENVIRONMENT "VT_CPU_ISA=mmx;VT_LOG=warn"
    PASS_REGULAR_EXPRESSION "warn: VT_CPU_ISA=mmx is no instruction set of this architecture; [a-z0-9]+ is used")
endfunction()

function(vt_add_tests)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/*.c")
  vt_add_program(vt_conformance ${sources})
  vt_add_plugin(vt_plugin_deferring tests/plugin/deferring.c tests/toy_backend.c)
  vt_add_plugin(toy_plugin examples/plugin/toy_plugin.c)
  add_dependencies(vt_conformance vt_plugin_deferring toy_plugin)
  vt_add_process_tests()
  set_target_properties(vt_conformance PROPERTIES ENABLE_EXPORTS ON)
  target_link_libraries(vt_conformance PRIVATE ${CMAKE_DL_LIBS})
  target_compile_definitions(vt_conformance PRIVATE _GNU_SOURCE)
  foreach(row ${VT_TEST_ROWS})
    add_test(NAME conformance.${row} COMMAND vt_conformance --row ${row})
    set_tests_properties(conformance.${row} PROPERTIES TIMEOUT 900)
  endforeach()
  # The example of docs/backends.md passes as well.
  add_test(NAME conformance.plugin.example COMMAND vt_conformance --row plugin)
  set_tests_properties(conformance.plugin.example PROPERTIES TIMEOUT 900 ENVIRONMENT "VT_TEST_PLUGIN=$<TARGET_FILE:toy_plugin>")
  vt_add_validated_tests()
  vt_add_isa_tests()
  # A row that the suite has and VT_TEST_ROWS lacks would go unnoticed.
  list(JOIN VT_TEST_ROWS "\n" rows)
  add_test(NAME conformance.rows COMMAND sh -c "\"$1\" --list | cut -d/ -f1 | LC_ALL=C sort -u" sh $<TARGET_FILE:vt_conformance>)
  set_tests_properties(conformance.rows PROPERTIES PASS_REGULAR_EXPRESSION "^${rows}\n$")
endfunction()

# What the public interface doesn't show.
function(vt_add_unit)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/unit/*.c")
  vt_add_inner_program(vt_unit ${sources})
  target_include_directories(vt_unit PRIVATE src)
  add_test(NAME unit COMMAND vt_unit)
  set_tests_properties(unit PROPERTIES TIMEOUT 300)
endfunction()

# Proves the schedules of collectives on symbols. Nothing there is for a sanitizer to see.
function(vt_add_schedules)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/schedules/*.c")
  vt_add_inner_program(vt_schedules ${sources})
  target_include_directories(vt_schedules PRIVATE src)
  if(NOT VT_SANITIZE)
    add_test(NAME schedules COMMAND vt_schedules)
    set_tests_properties(schedules PROPERTIES TIMEOUT 600)
  endif()
endfunction()

# Programs that replace functions of libc, or that libFuzzer must see into: they contain the library's objects.
function(vt_add_inner_program target)
  add_executable(${target} ${ARGN} $<TARGET_OBJECTS:vt_objects>)
  vt_set_flags(${target})
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
  target_include_directories(${target} PRIVATE include)
  target_link_libraries(${target} PRIVATE Threads::Threads m)
endfunction()

# Every request for memory or a thread fails once.
function(vt_add_faults)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/faults/*.c")
  vt_add_inner_program(vt_faults ${sources} tests/toy_backend.c)
  target_link_options(vt_faults PRIVATE -Wl,--wrap=pthread_create,--wrap=pthread_atfork,--wrap=mmap,--wrap=munmap)
  add_test(NAME faults COMMAND vt_faults "${CMAKE_CURRENT_SOURCE_DIR}/exports.txt")
  set_tests_properties(faults PROPERTIES TIMEOUT 600)
endfunction()

# Random programs of calls. With VT_FUZZ, which needs clang and its sanitizer "fuzzer-no-link", libFuzzer makes them.
function(vt_add_fuzz)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/*.c")
  if(VT_FUZZ)
    list(REMOVE_ITEM sources "${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/replay.c")
  endif()
  vt_add_inner_program(vt_fuzz ${sources} tests/capture_model.c)
  if(VT_FUZZ)
    target_link_options(vt_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    file(GLOB corpus CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/corpus/*")
    add_test(NAME fuzz COMMAND vt_fuzz --random 300 1 ${corpus})
    set_tests_properties(fuzz PROPERTIES TIMEOUT 600)
  endif()
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
    # An example in order gives the validation layer nothing to report.
    add_test(NAME validated.example.${name} COMMAND ${name} WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/..")
    set_tests_properties(
      validated.example.${name} PROPERTIES TIMEOUT 300 ENVIRONMENT "VT_VALIDATE=1;VT_LOG=info" FAIL_REGULAR_EXPRESSION "validation: ")
  endforeach()
endfunction()
