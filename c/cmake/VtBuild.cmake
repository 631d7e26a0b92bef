# The library targets and how they are compiled.

function(vt_is_top_level out)
  if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    set(${out} ON PARENT_SCOPE)
  else()
    set(${out} OFF PARENT_SCOPE)
  endif()
endfunction()

# Both kinds, unless BUILD_SHARED_LIBS asks for one.
function(vt_default_kinds out_static out_shared)
  set(${out_static} ON PARENT_SCOPE)
  set(${out_shared} ON PARENT_SCOPE)
  if(DEFINED BUILD_SHARED_LIBS AND BUILD_SHARED_LIBS)
    set(${out_static} OFF PARENT_SCOPE)
  elseif(DEFINED BUILD_SHARED_LIBS)
    set(${out_shared} OFF PARENT_SCOPE)
  endif()
endfunction()

function(vt_refuse_unknown_platforms)
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$"
     OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
    message(FATAL_ERROR "libvllm_vt runs on Linux on x86_64 and aarch64, not on ${CMAKE_SYSTEM_NAME} on ${CMAKE_SYSTEM_PROCESSOR}")
  endif()
endfunction()

# Release has -O3.
macro(vt_default_build_type)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release)
  endif()
endmacro()

# Flags of everything that is compiled here: library, tests and examples.
function(vt_set_flags target)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF C_VISIBILITY_PRESET hidden)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -ffp-contract=off)
  if(VT_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(VT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${VT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
    target_link_options(${target} PRIVATE -fsanitize=${VT_SANITIZE})
  endif()
endfunction()

function(vt_read_sources out)
  set(list "${CMAKE_CURRENT_SOURCE_DIR}/sources.txt")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${list}")
  file(STRINGS "${list}" sources REGEX "^[^#]")
  set(${out} "${sources}" PARENT_SCOPE)
endfunction()

# Compiles once, for both kinds.
function(vt_add_objects)
  vt_read_sources(sources)
  add_library(vt_objects OBJECT ${sources})
  vt_set_flags(vt_objects)
  set_target_properties(vt_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(vt_objects PRIVATE _GNU_SOURCE)
  target_include_directories(vt_objects PRIVATE include src)
  target_link_libraries(vt_objects PRIVATE Threads::Threads)
endfunction()

# Before 1.0 a minor version may break the interface.
function(vt_soversion out)
  if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(${out} 0.${PROJECT_VERSION_MINOR} PARENT_SCOPE)
  else()
    set(${out} ${PROJECT_VERSION_MAJOR} PARENT_SCOPE)
  endif()
endfunction()

function(vt_add_library target kind)
  add_library(${target} ${kind} $<TARGET_OBJECTS:vt_objects>)
  add_library(vllm_vt::${target} ALIAS ${target})
  vt_set_flags(${target})
  vt_soversion(soversion)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME vllm_vt VERSION ${PROJECT_VERSION} SOVERSION ${soversion})
  target_include_directories(
    ${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PRIVATE Threads::Threads)
endfunction()

# vllm_vt::vllm_vt always exists: where only the archive is built, it is the archive.
macro(vt_add_libraries)
  include(GNUInstallDirs)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  vt_add_objects()
  set(VT_LIBRARIES "")
  if(VT_BUILD_SHARED)
    vt_add_library(vllm_vt SHARED)
    # Its calls stay inside it, whatever other copy of the library a program holds.
    target_link_options(vllm_vt PRIVATE -Wl,-Bsymbolic)
    # It has threads, and handlers for the end of others: a program that closes it must not lose their code.
    target_link_options(vllm_vt PRIVATE -Wl,-z,nodelete)
    if(NOT VT_SANITIZE) # whose runtime comes with the program
      target_link_options(vllm_vt PRIVATE -Wl,-z,defs)
    endif()
    list(APPEND VT_LIBRARIES vllm_vt)
  endif()
  if(VT_BUILD_STATIC)
    vt_add_library(vllm_vt_static STATIC)
    list(APPEND VT_LIBRARIES vllm_vt_static)
  endif()
  if(NOT VT_BUILD_SHARED)
    add_library(vllm_vt::vllm_vt ALIAS vllm_vt_static)
  endif()
endmacro()
