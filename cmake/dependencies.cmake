# What Tessera builds on: LibTorch, four header-only libraries, and MPI and the libraries of image
# formats where they are found. A missing optional one removes a feature, whose use then says which package it needs.

include(${CMAKE_CURRENT_LIST_DIR}/interface.cmake)

# Header-only libraries, from the system or from TESSERA_HEADERS.
add_library(tessera_headers INTERFACE)
target_link_libraries(tessera_headers INTERFACE Tessera::fmt)
foreach(header CLI/CLI.hpp nlohmann/json.hpp toml++/toml.h)
  string(MAKE_C_IDENTIFIER "TESSERA_DIR_${header}" variable)
  find_path(${variable} ${header} HINTS ${TESSERA_HEADERS})
  if(NOT ${variable})
    message(FATAL_ERROR
      "${header} not found: install libcli11-dev, nlohmann-json3-dev and libtomlplusplus-dev, or "
      "set TESSERA_HEADERS to a folder that holds it")
  endif()
  if(NOT ${variable} STREQUAL "/usr/include")
    target_include_directories(tessera_headers SYSTEM INTERFACE ${${variable}})
  endif()
endforeach()

if(TESSERA_MPI)
  set(MPI_CXX_SKIP_MPICXX ON) # the C interface only
  find_package(MPI COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    message(STATUS "No MPI: install libopenmpi-dev and openmpi-bin to run ranks as processes")
  endif()
endif()
if(TESSERA_PNG)
  find_package(PNG)
  if(NOT PNG_FOUND)
    message(STATUS "No libpng: install libpng-dev to read PNG and to write pictures")
  endif()
endif()
if(TESSERA_JPEG)
  find_package(JPEG)
  if(NOT JPEG_FOUND)
    message(STATUS "No libjpeg: install libjpeg-dev to read JPEG")
  endif()
endif()
if(TESSERA_TIFF)
  find_package(ZLIB) # deflates the tiles that are written
  find_package(TIFF 4.5) # the first whose handles have limits and messages of their own
  if(NOT TIFF_FOUND OR NOT ZLIB_FOUND)
    set(TIFF_FOUND OFF)
    message(STATUS "No libtiff 4.5 or no zlib: install libtiff-dev and zlib1g-dev to read and write TIFF")
  endif()
endif()
if(TESSERA_OPENSLIDE)
  list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
  find_package(OpenSlide)
  if(NOT OpenSlide_FOUND)
    message(STATUS "No OpenSlide: install libopenslide-dev to read whole slides")
  endif()
endif()

# Visible to a project that adds Tessera as a part of itself, and links it.
get_property(found_here DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target ${found_here})
  set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
endforeach()
