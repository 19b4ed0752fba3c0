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

# Looks for a package, by the arguments at the end, where the option asks for it.
macro(tessera_optional OPTION FOUND WHEN_MISSING)
  if(${OPTION})
    find_package(${ARGN})
    if(NOT ${FOUND})
      message(STATUS "${WHEN_MISSING}")
    endif()
  endif()
endmacro()

list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
tessera_optional(TESSERA_PNG PNG_FOUND
  "No libpng: install libpng-dev to read PNG and to write pictures" PNG)
tessera_optional(TESSERA_JPEG JPEG_FOUND "No libjpeg: install libjpeg-dev to read JPEG" JPEG)
# 4.5 is the first whose handles have limits and messages of their own.
tessera_optional(TESSERA_TIFF TIFF_FOUND
  "No libtiff 4.5: install libtiff-dev to read and write TIFF" TIFF 4.5)
if(TIFF_FOUND)
  find_package(ZLIB) # deflates the tiles that are written
  if(NOT ZLIB_FOUND)
    set(TIFF_FOUND OFF)
    message(STATUS "No zlib: install zlib1g-dev to read and write TIFF")
  endif()
endif()
tessera_optional(TESSERA_OPENSLIDE OpenSlide_FOUND
  "No OpenSlide: install libopenslide-dev to read whole slides" OpenSlide)
tessera_optional(TESSERA_ZLIB ZLIB_FOUND
  "No zlib: install zlib1g-dev to read and write NIfTI" ZLIB)
# Other packages look for zlib, too.
set(NIFTI_FOUND OFF)
if(TESSERA_ZLIB AND ZLIB_FOUND)
  set(NIFTI_FOUND ON)
endif()
tessera_optional(TESSERA_HDF5 SerialHDF5_FOUND "No HDF5: install libhdf5-dev to read it" SerialHDF5)
tessera_optional(TESSERA_GDCM GDCMLibraries_FOUND
  "No GDCM: install libgdcm-dev to read DICOM" GDCMLibraries)
tessera_optional(TESSERA_GDAL GDAL_FOUND "No GDAL: install libgdal-dev to read rasters of maps" GDAL)

# Visible to a project that adds Tessera as a part of itself, and links it.
get_property(found_here DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target ${found_here})
  set_target_properties(${target} PROPERTIES IMPORTED_GLOBAL TRUE)
endforeach()
