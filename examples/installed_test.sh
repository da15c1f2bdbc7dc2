#!/usr/bin/env bash
# installed_test.sh BUILD EXAMPLES: installs into a temporary prefix, builds the examples there with a C compiler and pkg-config, with
# the shared library, and as a CMake package, with the static one; runs them. Looks at what the shared library shows.
set -euo pipefail
build=$(realpath "$1") examples=$(realpath "$2")
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name tilewright.pc)") LD_LIBRARY_PATH=$(dirname "$(find "$prefix" -name libtilewright.so)")
export PKG_CONFIG_PATH LD_LIBRARY_PATH

cc -std=c99 -Wall -Wextra -pedantic -Werror "$examples/attention.c" -o "$prefix/from_c" $(pkg-config --cflags --libs tilewright)
"$prefix/from_c"
c++ -std=c++20 "$examples/attention.cpp" -o "$prefix/from_cpp" $(pkg-config --cflags --libs tilewright)
"$prefix/from_cpp"

# Every function of the headers is there, those of the C interface with a version; nothing that is not theirs is.
library=$LD_LIBRARY_PATH/libtilewright.so
declared=$(grep -o '^TILEWRIGHT_API [a-z_* ]*(' "$(find "$prefix" -name tilewright.h)" | grep -o 'tilewright_[a-z_]*($' | tr -d '(')
for name in $declared; do
  nm -D --defined-only "$library" | grep -q " T $name@@TILEWRIGHT_0.1$" || { echo "$name@@TILEWRIGHT_0.1 is not shown" >&2; exit 1; }
done
c++ -std=c++20 -x c++ - -o "$prefix/uses" $(pkg-config --cflags --libs tilewright) <<'EOF'
#include "tilewright/attention.h"
#include "tilewright/merge.h"
using namespace tilewright;
int main() {
    const Problem p = *parse_problem("backward:sq5,deterministic");
    float out[64], lse[1];
    const TuningDatabase database = TuningDatabase::open({.use_user = false, .use_system = false});
    const bool fine = validate(p).ok() && to_text(p).size() > 5 && kv_lengths(p).size() == 1 && visible_pairs(p) > 0 && useful_flops(p) > 0 && parse_dtype("bf16").ok() &&
                      parse_config(to_json({})).ok() && !config_fields().empty() && attention_merge({}, 1, 64, out, lse).ok() && !describe({}, 0).empty() &&
                      user_database_path().size() < 4096 && name(p.dtype) && name(p.operation) && name(Provenance::exact) && name(StatusCode::ok) &&
                      dense(out, 1, 1, 64).row_stride == 64 && dense(static_cast<const void*>(out), 1, 1, 64).row_stride == 64 && database.layers().size() == 1;
    return fine ? 0 : 1;
}
EOF
"$prefix/uses"
theirs='^(tilewright_[a-z_]+|tilewright::(Attention|TuningDatabase)::[^S].*|tilewright::(attention_merge|config_fields|dense|kv_lengths|parse_config|parse_dtype|parse_problem|useful_flops|user_database_path|visible_pairs)(\[abi:cxx11\])?\(.*|tilewright::name\(tilewright::(DType|Operation|Provenance|StatusCode)\)|tilewright::(describe|to_json|to_text|validate)(\[abi:cxx11\])?\(tilewright::(LookupResult|Config|Problem) const&.*)@@TILEWRIGHT_0\.1$'
if nm -DC --defined-only "$library" | sed 's/^[0-9a-f]* . //' | grep -vE "$theirs|^TILEWRIGHT_0.1$"; then
  echo "the library shows these, which are no public header's" >&2
  exit 1
fi

mkdir "$prefix/project"
cat > "$prefix/project/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(example CXX)
find_package(Tilewright REQUIRED)
add_executable(example $examples/attention.cpp)
target_link_libraries(example PRIVATE Tilewright::static)
EOF
cmake -S "$prefix/project" -B "$prefix/project/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$prefix/project/build" >/dev/null
"$prefix/project/build/example"
