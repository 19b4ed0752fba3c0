# GDCM: GDCMLibraries_FOUND and the target GDCMLibraries::gdcm. Debian's own package file for CMake
# asks for programs that the package does not bring.

find_path(GDCMLibraries_INCLUDE_DIR gdcmReader.h PATH_SUFFIXES gdcm-3.1 gdcm-3.0)
set(GDCMLibraries_FILES)
set(GDCMLibraries_NEEDED GDCMLibraries_INCLUDE_DIR)
foreach(part MSFF IOD DSED DICT Common)
  find_library(GDCMLibraries_${part} gdcm${part})
  mark_as_advanced(GDCMLibraries_${part})
  list(APPEND GDCMLibraries_NEEDED GDCMLibraries_${part})
  list(APPEND GDCMLibraries_FILES ${GDCMLibraries_${part}})
endforeach()
mark_as_advanced(GDCMLibraries_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GDCMLibraries DEFAULT_MSG ${GDCMLibraries_NEEDED})
if(GDCMLibraries_FOUND AND NOT TARGET GDCMLibraries::gdcm)
  add_library(GDCMLibraries::gdcm INTERFACE IMPORTED)
  set_target_properties(GDCMLibraries::gdcm PROPERTIES
    INTERFACE_LINK_LIBRARIES "${GDCMLibraries_FILES}"
    INTERFACE_INCLUDE_DIRECTORIES ${GDCMLibraries_INCLUDE_DIR})
endif()
