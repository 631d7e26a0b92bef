# Installs headers, libraries, the CMake package and the pkg-config file. All of them can be moved together.

include(CMakePackageConfigHelpers)

function(vt_install_cmake_package)
  set(directory "${CMAKE_INSTALL_LIBDIR}/cmake/vllm_vt")
  set(build "${CMAKE_CURRENT_BINARY_DIR}/package")
  install(EXPORT vllm_vt NAMESPACE vllm_vt:: FILE vllm_vt-targets.cmake DESTINATION "${directory}")
  configure_package_config_file(cmake/vllm_vt-config.cmake.in "${build}/vllm_vt-config.cmake" INSTALL_DESTINATION "${directory}")
  write_basic_package_version_file("${build}/vllm_vt-config-version.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${build}/vllm_vt-config.cmake" "${build}/vllm_vt-config-version.cmake" DESTINATION "${directory}")
endfunction()

# The way from the folder of the pkg-config file back to the prefix.
function(vt_pc_prefix out)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(${out} "${CMAKE_INSTALL_PREFIX}" PARENT_SCOPE)
  else()
    file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(${out} "\${pcfiledir}/${up}" PARENT_SCOPE)
  endif()
endfunction()

# A folder as the pkg-config file writes it: below ${prefix} unless it is absolute.
function(vt_pc_folder out folder)
  if(IS_ABSOLUTE "${folder}")
    set(${out} "${folder}" PARENT_SCOPE)
  else()
    set(${out} "\${prefix}/${folder}" PARENT_SCOPE)
  endif()
endfunction()

function(vt_install_pkg_config)
  vt_pc_prefix(VT_PC_PREFIX)
  vt_pc_folder(VT_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
  vt_pc_folder(VT_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")
  set(file "${CMAKE_CURRENT_BINARY_DIR}/package/vllm_vt.pc")
  configure_file(cmake/vllm_vt.pc.in "${file}" @ONLY)
  install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

function(vt_install)
  install(TARGETS ${VT_LIBRARIES} EXPORT vllm_vt)
  install(DIRECTORY include/vllm_vt DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
  vt_install_cmake_package()
  vt_install_pkg_config()
endfunction()
