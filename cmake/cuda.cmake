# GPUs: where LibTorch is built with CUDA and there is a compiler for it. Sets TESSERA_HAS_CUDA and,
# where NCCL is found besides, TESSERA_HAS_NCCL.

set(TESSERA_HAS_CUDA OFF)
set(TESSERA_HAS_NCCL OFF)
if(TESSERA_CUDA AND TARGET torch_cuda)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(TESSERA_HAS_CUDA ON)
    # LibTorch's package has replaced what the user said by its own.
    set(CMAKE_CUDA_ARCHITECTURES ${tessera_architectures})
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17) # CMake before 3.31 does not know 20 for nvcc 13
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Shared) # the one that LibTorch has loaded
    find_package(CUDAToolkit REQUIRED)
  else()
    message(STATUS "No nvcc: LibTorch runs on GPUs, and Tessera will not; install CUDA's toolkit")
  endif()
endif()

if(TESSERA_NCCL AND TESSERA_HAS_CUDA)
  # Python's packages have it beside torch, in a folder and under a name of their own.
  get_filename_component(site_packages "${TORCH_INSTALL_PREFIX}/.." ABSOLUTE)
  set(nccl_places ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR} ${site_packages}/nvidia/nccl)
  find_path(TESSERA_NCCL_INCLUDE nccl.h HINTS ${nccl_places} PATH_SUFFIXES include)
  find_library(TESSERA_NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${nccl_places}
               PATH_SUFFIXES lib lib64)
  if(TESSERA_NCCL_INCLUDE AND TESSERA_NCCL_LIBRARY)
    set(TESSERA_HAS_NCCL ON)
  else()
    message(STATUS "No NCCL: install libnccl-dev to run ranks on several GPUs without MPI's copies")
  endif()
endif()
