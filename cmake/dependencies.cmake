# What Tessera builds on: LibTorch, threads, and three header-only libraries.

find_package(Threads REQUIRED)
find_package(Torch REQUIRED)
find_package(OpenMP REQUIRED) # at::parallel_for is inline, and serial without it

# Torch as a system include: its headers do not pass our warnings.
add_library(tessera_torch INTERFACE)
target_include_directories(tessera_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
# libstdc++ before torch: Python's torch libraries export parts of an older std::filesystem, which
# crash when they are found first.
target_link_libraries(tessera_torch INTERFACE stdc++ ${TORCH_LIBRARIES} Threads::Threads
                                              OpenMP::OpenMP_CXX)
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(tessera_torch INTERFACE ${torch_flags})

# Header-only libraries, from the system or from TESSERA_HEADERS.
add_library(tessera_headers INTERFACE)
foreach(header fmt/format.h CLI/CLI.hpp nlohmann/json.hpp)
  string(MAKE_C_IDENTIFIER "TESSERA_DIR_${header}" variable)
  find_path(${variable} ${header} HINTS ${TESSERA_HEADERS})
  if(NOT ${variable})
    message(FATAL_ERROR "${header} not found: install libfmt-dev, libcli11-dev and "
                        "nlohmann-json3-dev, or set TESSERA_HEADERS to a folder that holds it")
  endif()
  # /usr/include is searched anyway; naming it breaks include_next.
  if(NOT ${variable} STREQUAL "/usr/include")
    target_include_directories(tessera_headers SYSTEM INTERFACE ${${variable}})
  endif()
endforeach()
target_compile_definitions(tessera_headers INTERFACE FMT_HEADER_ONLY)
