# libtilewright for programs that link it: one shared and one static library of the layers that calls need, the public headers,
# pkg-config and a CMake package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(objects "")
foreach(layer core backends model db runtime)
  list(APPEND objects $<TARGET_OBJECTS:tilewright_${layer}>)
endforeach()
set(dependencies SQLite::SQLite3 Threads::Threads ${CMAKE_DL_LIBS})

add_library(tilewright_shared SHARED ${objects})
target_link_libraries(tilewright_shared PRIVATE ${dependencies} tilewright_options)
target_link_options(tilewright_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map -Wl,--no-undefined)
set_target_properties(tilewright_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)

add_library(tilewright_static STATIC ${objects})
target_link_libraries(tilewright_static INTERFACE ${dependencies})

foreach(kind shared static)
  set_target_properties(tilewright_${kind} PROPERTIES OUTPUT_NAME tilewright EXPORT_NAME ${kind} LINKER_LANGUAGE CXX)
  target_include_directories(tilewright_${kind} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(tilewright_${kind} INTERFACE cxx_std_20)
endforeach()

# The file says where the tree is by where it lies itself: the tree may be moved, or installed elsewhere than it was configured for.
file(RELATIVE_PATH TILEWRIGHT_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/tilewright.pc.in ${PROJECT_BINARY_DIR}/tilewright.pc @ONLY)
configure_package_config_file(cmake/TilewrightConfig.cmake.in ${PROJECT_BINARY_DIR}/TilewrightConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tilewright)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TilewrightConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS tilewright_shared tilewright_static EXPORT TilewrightTargets)
install(TARGETS tilewright)
install(DIRECTORY include/tilewright DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT TilewrightTargets NAMESPACE Tilewright:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tilewright)
install(FILES ${PROJECT_BINARY_DIR}/TilewrightConfig.cmake ${PROJECT_BINARY_DIR}/TilewrightConfigVersion.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tilewright)
install(FILES ${PROJECT_BINARY_DIR}/tilewright.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
