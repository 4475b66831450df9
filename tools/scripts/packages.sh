# Packages of Debian 12 that a build needs, and how to get them. Sourced by
# ./quickstart and ./check from the root of the repository.

# To build the tools.
build_packages="clang-22 lld-22 llvm-22-dev llvm-22-tools libmlir-22-dev
  mlir-22-tools ninja-build cmake nlohmann-json3-dev libcli11-dev python3 g++
  zlib1g-dev libzstd-dev"
# To build and run the tests as well.
test_packages="libgtest-dev clang-format-22"

# require_packages PACKAGE...: installs those that are missing, with apt-get.
# Without the right to, says how to and exits with 2.
require_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian: make sure of LLVM, MLIR and clang 22, cmake," \
      "ninja, nlohmann-json and CLI11 yourself."
    return
  fi
  missing=""
  for package in "$@"; do
    # dpkg-query fails for a package it has never heard of.
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) ||
      state=unknown
    [ "$state" = installed ] || missing="$missing $package"
  done
  if [ -z "$missing" ]; then
    echo "All packages are installed."
    return
  fi
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "Packages are missing, and there is no sudo. As root, run:" >&2
      echo "  apt-get update && apt-get install --no-install-recommends" \
        $missing >&2
      exit 2
    fi
    as_root=sudo
  fi
  echo "Installing with apt-get:$missing"
  $as_root apt-get update -q
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
    --no-install-recommends $missing
}
