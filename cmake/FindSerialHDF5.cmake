# HDF5 without MPI, whose headers need those of MPI: SerialHDF5_FOUND and the target SerialHDF5::hdf5.
# Debian has both builds, each in a folder of its own.

find_path(SerialHDF5_INCLUDE_DIR hdf5.h PATH_SUFFIXES hdf5/serial)
find_library(SerialHDF5_LIBRARY NAMES hdf5_serial hdf5 PATH_SUFFIXES hdf5/serial)
mark_as_advanced(SerialHDF5_INCLUDE_DIR SerialHDF5_LIBRARY)
if(SerialHDF5_INCLUDE_DIR)
  file(GLOB SerialHDF5_HEADERS ${SerialHDF5_INCLUDE_DIR}/H5pubconf*.h)
  foreach(header ${SerialHDF5_HEADERS})
    file(STRINGS ${header} parallel REGEX "^#define H5_HAVE_PARALLEL 1")
    if(parallel)
      set(SerialHDF5_INCLUDE_DIR SerialHDF5_INCLUDE_DIR-NOTFOUND)
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SerialHDF5 DEFAULT_MSG SerialHDF5_LIBRARY SerialHDF5_INCLUDE_DIR)
if(SerialHDF5_FOUND AND NOT TARGET SerialHDF5::hdf5)
  add_library(SerialHDF5::hdf5 UNKNOWN IMPORTED)
  set_target_properties(SerialHDF5::hdf5 PROPERTIES
    IMPORTED_LOCATION ${SerialHDF5_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${SerialHDF5_INCLUDE_DIR})
endif()
