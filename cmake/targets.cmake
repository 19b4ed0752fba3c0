# One target per folder. `tessera_folder(geometry SOURCES ... DEPENDS base)` makes the library
# tessera_geometry; TORCH says that the folder sees tensors and shares the precompiled torch header,
# or, with PRECOMPILE, has one of its own that holds these headers too.

add_library(tessera_options INTERFACE)
target_compile_features(tessera_options INTERFACE cxx_std_20)
# No contraction to fused multiply-adds: a kernel that recomputes a number must get the same bits,
# however the compiler inlines it.
target_compile_options(tessera_options INTERFACE -Wall -Wextra -Werror -ffp-contract=off)
# GCC 12 and 13 see overflows inside fmt and std::string that are not there, once they inline enough.
target_compile_options(tessera_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow>)
if(TESSERA_NATIVE)
  target_compile_options(tessera_options INTERFACE -march=native)
endif()
target_include_directories(tessera_options INTERFACE ${PROJECT_SOURCE_DIR})
target_link_libraries(tessera_options INTERFACE tessera_headers)

set(TESSERA_PRECOMPILED <ATen/ATen.h> <fmt/format.h> <nlohmann/json.hpp>)
add_library(tessera_pch STATIC ${PROJECT_SOURCE_DIR}/cmake/precompile_torch.cpp)
target_link_libraries(tessera_pch PRIVATE tessera_options tessera_torch)
target_precompile_headers(tessera_pch PRIVATE ${TESSERA_PRECOMPILED})

function(tessera_folder name)
  cmake_parse_arguments(ARG "TORCH" "" "SOURCES;DEPENDS;PRECOMPILE" ${ARGN})
  add_library(tessera_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(tessera_${name} PRIVATE tessera_options)
  foreach(dependency IN LISTS ARG_DEPENDS)
    target_link_libraries(tessera_${name} PUBLIC tessera_${dependency})
  endforeach()
  if(ARG_TORCH)
    target_link_libraries(tessera_${name} PUBLIC tessera_torch)
    if(ARG_PRECOMPILE)
      target_precompile_headers(tessera_${name} PRIVATE ${TESSERA_PRECOMPILED} ${ARG_PRECOMPILE})
    else()
      target_precompile_headers(tessera_${name} REUSE_FROM tessera_pch)
    endif()
  endif()
endfunction()
