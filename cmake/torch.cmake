# Tessera::torch: LibTorch and what its headers need. Tessera's own build and the installed
# package both include this file.

find_package(Threads REQUIRED)
find_package(Torch REQUIRED)
find_package(OpenMP REQUIRED) # at::parallel_for is inline, and serial without it

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
endif()
