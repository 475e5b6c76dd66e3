# SPDX-License-Identifier: MIT
# Compile with zig for an old C library: ZIG is the program, ZIG_TARGET for example
# aarch64-linux-gnu.2.17. scripts/build-wheels.sh sets both.
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "$ENV{ZIG_TARGET}")
set(CMAKE_C_COMPILER "$ENV{ZIG}" cc -target "$ENV{ZIG_TARGET}")
# The linker strips, because `strip` may not know the other machine.
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-s")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s")
set(CMAKE_STRIP /bin/true)
# The system's ar cannot index objects of another machine.
set(CMAKE_C_ARCHIVE_CREATE "\"$ENV{ZIG}\" ar qcs <TARGET> <OBJECTS>")
set(CMAKE_C_ARCHIVE_FINISH "")
