# TESSERA_PYTHON: a Python with torch, torchvision and numpy, for the tests that compare with them.
# Debian's belong to the system's Python, which need not be the first one on the path.
set(TESSERA_PYTHON "" CACHE FILEPATH "Python with torch, torchvision and numpy, for tests")
if(NOT TESSERA_PYTHON)
  find_program(TESSERA_PATH_PYTHON python3)
  find_program(TESSERA_SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
  foreach(candidate ${TESSERA_PATH_PYTHON} ${TESSERA_SYSTEM_PYTHON})
    execute_process(COMMAND ${candidate} -c "import numpy, torch, torchvision"
                    RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
    if(result EQUAL 0)
      set_property(CACHE TESSERA_PYTHON PROPERTY VALUE ${candidate})
      break()
    endif()
  endforeach()
endif()
if(NOT TESSERA_PYTHON)
  message(WARNING "no Python with torch and torchvision: the tests that compare with them will fail "
                  "(Debian: python3-torch python3-torchvision)")
  set(TESSERA_PYTHON python3)
endif()
