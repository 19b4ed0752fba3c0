# What Tessera's headers need of others: Tessera::torch and Tessera::fmt. Tessera's own build and the
# installed package both include this file.

find_package(Threads REQUIRED)
find_package(Torch REQUIRED)
find_package(OpenMP REQUIRED) # at::parallel_for is inline, and serial without it
find_path(TESSERA_FMT fmt/format.h HINTS ${TESSERA_HEADERS})
if(NOT TESSERA_FMT)
  message(FATAL_ERROR "fmt/format.h not found: install libfmt-dev, or set TESSERA_HEADERS to a "
                      "folder that holds it")
endif()

if(NOT TARGET Tessera::torch)
  add_library(Tessera::torch INTERFACE IMPORTED GLOBAL)
  # As a system include: torch's headers do not pass our warnings.
  target_include_directories(Tessera::torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  # libstdc++ before torch: Python's torch libraries export parts of an older std::filesystem, which
  # crash when they are found first.
  target_link_libraries(Tessera::torch INTERFACE stdc++ ${TORCH_LIBRARIES} Threads::Threads
                                                 OpenMP::OpenMP_CXX)
  separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(Tessera::torch INTERFACE ${torch_flags})

  add_library(Tessera::fmt INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(Tessera::fmt INTERFACE FMT_HEADER_ONLY)
  # /usr/include is searched anyway; naming it breaks include_next.
  if(NOT TESSERA_FMT STREQUAL "/usr/include")
    target_include_directories(Tessera::fmt SYSTEM INTERFACE ${TESSERA_FMT})
  endif()
endif()
